// Package simulation runs mirrors through random scripts, and checks everything that they
// show against a model.
//
// A test only covers what its author thought of. A cache that runs for a year breaks because of
// combinations: an object is re-created while the watch is half open, the third page expires and
// a handler stalls. So a script is generated from a seed: writes, faults of the source, of the
// network and of the user's functions, handlers that are added and removed. It runs in a bubble
// of testing/synctest, where an hour takes less than a tenth of a second and a leaked goroutine
// fails the run. One seed is about twenty minutes of virtual time. Run thousands of seeds before
// a change lands:
//
//	go run ./internal/simulation/cmd -seeds 2000 -from 0
//
// docs/testing.md explains the output. What grows slowly is found by package soak instead, in a day.
//
// # A run
//
//	Script ──steps──▶ world ──writes──▶ truth (what the source was given)
//	                    │                  ▲ all checks compare with it
//	                    ▼                  │
//	              cachetest.Source     observer, handler, checks, finale
//	                    │  directly, or  ▲
//	                    ▼  over HTTP     │ content, handler calls, reports
//	                   tap ──────▶ mirror (1 to 3 of 9 kinds, with handlers)
//
// A script.Script is plain data: a Setup, and Steps with the pauses between them.
//
// The truth records every state of the source with its moment. Moments count the changes of the
// source and, unlike versions, never regress. A state is recorded before the source has it, so
// that no mirror can show an unrecorded one.
//
// A tap is between each reflector and its source. It sets marks: it numbers objects (receipts) and
// failures. So the order in which objects were sent, the number of transforms of each, and the
// reports of each failure can be checked afterwards. It also does what the world's proxy says: load
// balancers that end watches (B27), servers that answer a forgotten version with nothing (B28), lists
// behind their items (B31) or without a version (B32), and forbidden namespaces.
//
// # Checks
//
// At each call: a handler receives a change that follows the previous one, in order, and the
// store is not behind it (handler.go); each observed state of a key follows the one observed
// before (observer.go); a transform receives each receipt once (mirror.go); user code is not
// called after the run (calls.go).
//
// After each step, whatever the mirrors are doing (checks.go): readers see the source at one
// moment, not before the moment of the applied version; versions do not regress without a report;
// backlogs are bounded.
//
// At the end (finale.go) all faults are ended. After the pause that G1 allows, the store, its
// index and each handler's replayed view must equal the source, without quarantined objects
// (compare.go). That must still hold after three minutes, without any handler call. Then requests
// are counted (rates.go), pauses are compared with client-go's (pauses.go), reports are matched with
// failures (reports.go), and everything is
// stopped at the same moment: each Run must return at once and leave no goroutine.
//
// Some scripts end with a restore (Setup.RestoreLast): the healthy source regresses to an older
// state, refuses one watch of each reflector and accepts the next without an error. Every mirror
// must converge although nothing is written after that (B23).
//
// Over HTTP the network damages bytes, or cuts frames and lists (world/damage.go). Damage always breaks
// the syntax, since valid bytes could have been sent. Some scripts end with a last write whose
// frame is damaged (Setup.DamageLast): it must be shown although nothing follows (B24).
//
// A failure begins with the broken promise, "1m2s: G7: ..."; script.FailureKind reads it. A check
// may be lenient where the library promises nothing (after a source has regressed, for undecodable
// objects); a comment gives the reason.
//
// # What a seed fixes
//
// The script, and the random numbers for the mirrors' jitter; not the schedule of goroutines, nor
// the order of Go's maps. So a failing seed may pass when it runs again: Replay runs it up to 200
// times, and Shrink accepts a smaller script if any of its runs fails in the same way. RunsToTrust
// computes after how many passing runs a script counts as healthy.
//
// # How it is built
//
//	script/                  scripts as data: generating, shrinking and replaying them; results
//	run.go, steps.go         one run; the steps that concern mirrors
//	finale.go, callers.go    ending all faults, three calm minutes, stopping; callers of Fresh
//	mirror.go, mirror_kinds.go, foreign_store.go, overlap.go
//	                         mirrors of all kinds, a store of another package, several writers of
//	                         one store, and a set whose members may stop
//
//	world/                   what mirrors live in: source, network, faults, the truth, taps
//	recording/               recorded runs, for corpora of fuzz targets
//
//	mirror_seen.go           a mirror as the checks see it
//	handler.go, filter.go    a handler that replays its calls and checks each of them, also behind
//	                         a filter, and files objects by a field
//	calls.go, user_functions.go
//	                         calls of user code, and the return of Run; transforms and indexes
//	observer.go, checks.go   observed states of a key; checks after each step
//	snapshots.go             snapshots of a store, compared at once and again at the end
//	freshness.go             calls of Fresh and Verify
//	rates.go, pauses.go      requests per minute; pauses, beside client-go's
//	compare.go, reports.go   the final content and the reports, compared with the truth
//	finally.go               the calm, and what is left after the end
//
//	cmd/                     many seeds, in their own processes
//	testdata/scripts/        small scripts of fixed faults, which the tests run
//
// # To add a step
//
// One that changes the world is added in package world. One that concerns a mirror is named in steps
// (steps.go), and in choices (script/generate.go).
//
// # To add a check
//
// Check as early as possible, and report with World.Fail and the number of the guarantee: "G7: %s
// shows ...". Checks run on many goroutines; the world's lock guards failures and trace, each part
// has a lock for the rest. Break the library on purpose and see the check fail. Name the check in
// docs/testing.md.
package simulation
