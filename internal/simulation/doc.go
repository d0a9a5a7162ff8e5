// Package simulation lets mirrors live through scripts that nobody has thought of, and
// checks all that they show against a model.
//
// A test checks what its author had in mind. What breaks a cache that is left alone for
// a year is what nobody had: an object created again under its name while the watch is
// half open, the third page expires and a handler stalls. So here a script is drawn at
// random from a seed: writes, faults of the source and of the network, faults of the
// user's functions, handlers that come and go. It is carried out in a bubble of
// testing/synctest, where an hour takes less than a tenth of a second and a goroutine that
// is left when it ends fails the run. One seed is about twenty minutes of virtual time; thousands of seeds are
// run before a change lands:
//
//	go run ./internal/simulation/cmd -seeds 2000 -from 0
//
// docs/testing.md says how to read what that prints.
//
// # A run
//
//	Script ──steps──▶ world ──writes──▶ truth (what the source was given)
//	                    │                  ▲ all checks compare with it
//	                    ▼                  │
//	              cachetest.Source     observer, handler, look, finale
//	                    │  directly, or  ▲
//	                    ▼  over HTTP     │ what it shows, tells and reports
//	                   tap ──────▶ mirror (1 to 3 of 7 kinds, with handlers)
//
// A Script is plain data: what there is at the start (Setup), and Steps with the pauses
// between them. Any part of a script is a script, which is what makes shrinking possible:
// a step can be carried out whatever has happened before, and at worst does nothing.
//
// The truth has every state that the source was made to hold, with the moment at which
// it came. Moments count what happened to the source, and unlike versions never go
// back. A state is known to the truth before the source has it, so that nobody can be
// shown something of which the truth knows nothing.
//
// A tap stands between each reflector and its source. It changes nothing but marks: it
// numbers objects (receipts) and failures, so that the order in which objects were sent, how
// often each was transformed, and whether each failure was reported once, can be known
// afterwards.
//
// # Checks
//
// At each call: a handler receives what follows on what it received before, in order, and
// the store is not behind it (handler.go); a state that anyone sees follows on what he
// saw (observer.go); a transform sees each receipt once (mirror.go); nothing is called
// after its time (calls.go).
//
// After each step, in the middle of whatever the mirrors are doing (look.go): what a reader sees
// is a state of the source as it was at one moment, and that not before the one that the
// version names; versions do not go back without a report; backlogs are bounded.
//
// At the end (finale.go): everything is repaired; after the pause that G1 allows store,
// index, and each handler's replayed view must equal the source (compare.go), without what
// is quarantined; after three calm minutes still, and nobody may have received anything.
// Then the requests are counted (rates.go), reports are matched with failures (reports.go),
// and everything is stopped at one moment: each Run must return at once, and leave nothing.
//
// Some scripts end with a restore (Setup.RestoreLast): the source, well by then, regresses to an
// older state, refuses one watch of each reflector and accepts the next without a word. Every
// mirror must follow, though nothing is written any more (B23).
//
// Over HTTP the network damages what it carries (damage.go): a byte, a frame or list that is cut. All
// of it breaks the syntax, since well-formed bytes might have been sent. Some scripts end with a last
// write whose frame is damaged (Setup.DamageLast): it must be shown though nothing follows (B24).
//
// A failure begins with what it breaks, "1m2s: G7: ..."; FailureKind reads that. A
// check may be lenient where the library promises nothing (after a source has regressed in
// time, for what could not be decoded): the comment says why. A check that was lenient
// without a reason would be a hole.
//
// # What a seed fixes
//
// The script, and the random numbers that the mirrors are given for their jitter. Not
// the schedule of goroutines, nor the order of Go's maps. So a seed that fails may hold
// when it is run again: Replay runs it up to 200 times, and Shrink takes a smaller script
// for failing if any of its runs fails in the same way. RunsToTrust says after how many
// runs without a failure one may be mistaken for healthy.
//
// # How it is built
//
//	script.go, generate.go   a script; how one is drawn from a seed
//	steps.go, writes.go      what a script may do; writes, and restoring a backup
//	world.go, object.go      one run: source, truth, mirrors, clock; what objects are marked with
//	truth.go                 the model: each key's life, and moments
//	tap.go, tap_watch.go     between reflector and source: receipts, failures, requests
//	damage.go, wrong_type.go what a network damages; lists of nothing but another type
//	mirror.go, mirror_kinds.go, foreign_store.go
//	                         what mirrors: the seven kinds, and a store that is not ours
//	handler.go               a handler that replays what it receives, and checks each call
//	observer.go, look.go     states seen one after the other; a look at everything
//	snapshots.go             snapshots of a store, compared at once, and again at the end
//	calls.go, rates.go       calls of user code and when Run may return; requests a minute
//	freshness.go             callers of Fresh and Verify, and watches that lose events
//	finale.go                healing, calm, stopping
//	compare.go, reports.go   the content at the end, and the reports, against the truth
//	trace.go                 the last things that happened, for readers of a failure
//	replay.go, shrink*.go    running again; making smaller
//	record*.go, recording/   what happened in a run as lines, for corpora of fuzz targets
//	soak*.go                 a day of churn: is everything as flat at its end as at its start?
//	cmd/                     many seeds, in processes of their own
//	testdata/scripts/        small scripts of faults that are fixed; the tests run them
//
// # To add a step
//
// Give it a name in steps (steps.go), and an element in choices (generate.go) that draws
// it, with a weight: 1 is rare, 8 frequent. Something that lasts is a spell, which brings its own
// end. What it does must leave the truth true: a write walks through world.write or
// world.remove, and a fault that lasts is ended by world.heal. A new choice changes what
// all seeds mean from then on, so scripts that are to stay are kept as files.
//
// # To add a check
//
// Put it where what it looks at is seen first, and report with world.fail and the number of the
// guarantee: "G7: %s shows ...". Checks are called by many goroutines; the world's own
// lock guards failures and trace, each part has its own for the rest. Then break what
// it is to notice, on purpose, and see it fail: a check that has never failed checks
// nothing. A row of docs/testing.md names it.
package simulation
