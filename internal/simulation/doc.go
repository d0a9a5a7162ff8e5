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
//	Script ──steps──▶ run ──▶ world: source, network, faults, the truth about all of it
//	                   │                        │ taps
//	                   │                        ▼
//	                   └────────────▶ mirror: 1 to 3 of 9 kinds, with handlers
//	                                            │ content, calls, reports
//	                                            ▼
//	                                  check: compares them with the truth
//
// A script.Script is plain data: a Setup, and Steps with the pauses between them. Checks run in each
// call of a user's function and after each step.
//
// At the end (finale.go) all faults are ended. After the pause that G1 allows, the store, its
// index and each handler's replayed view must equal the source, without quarantined objects. That
// must still hold after three minutes, without any handler call. Then requests, pauses and reports
// of the whole run are checked, and everything is stopped at the same moment: each Run must return
// at once and leave no goroutine.
//
// Some scripts end with a restore (Setup.RestoreLast): the healthy source regresses to an older
// state, refuses one watch of each reflector and accepts the next without an error. Every mirror
// must converge although nothing is written after that (B23).
//
// Over HTTP the network damages bytes, or cuts frames and lists (world/damage.go). Damage always breaks
// the syntax, since valid bytes could have been sent. Some scripts end with a last write whose
// frame is damaged (Setup.DamageLast): it must be shown although nothing follows (B24).
//
// A failure begins with the broken promise, "1m2s: G7: ..."; script.FailureKind reads it.
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
//	script/             scripts as data: generating, shrinking and replaying them; results
//	world/              what mirrors live in: source, network, faults, the truth, taps
//	check/              what mirrors must do: the checks, and handlers that check their calls
//	run.go              one run of a script, from Run to its result
//	steps.go            the steps that concern mirrors, their handlers and callers
//	callers.go          callers of Fresh and Verify
//	mirror.go, mirror_kinds.go, foreign_store.go
//	                    mirrors of all kinds, and a store of another package
//	overlap.go          several writers of one store; a set whose members may stop
//	finale.go           ending all faults, three calm minutes, stopping
//	recording/          recorded runs, for corpora of fuzz targets
//	soak/               a day of churn
//	cmd/                many seeds, in their own processes
//	testdata/scripts/   small scripts of fixed faults, which the tests run
//
// Package world knows neither mirrors nor checks, and package check does not know how mirrors are
// built and run; only this package knows all three.
//
// # To add to it
//
// The pages of packages world and check say how a fault and a check are added. A step that concerns
// mirrors is named in steps (steps.go), and in choices (script/generate.go). It must be possible
// whatever happened before. A mirror of another kind is a script.Kind and a case in mirror.make.
package simulation
