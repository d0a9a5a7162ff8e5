// Package script has the input and the outcome of a run of the simulation as plain data.
//
// A Script is a Setup (the source and its mirrors) and Steps with the pauses between them. It is
// generated from a seed, printed, kept in a file, sent to a worker process and made smaller, and
// none of this needs the world in which it runs. Package simulation runs it.
//
//	seed ──Generate──▶ Script ──Runner──▶ Result ──Kind──▶ "G7", "deadlock", ...
//	                     ▲                   │
//	                     └─── Shrink ◀───────┘ Replay, FailsOnce
//
// # What it holds
//
//	script.go         Script, Setup, MirrorSetup, HandlerSetup and Step; their JSON
//	words.go          the values of Step.What, which generator and world share
//	keys.go           the keys and namespaces of objects
//	generate.go       the script of a seed
//	result.go         Result, and the kind of a failure
//	replay.go         running a script again: rates of failures, and runs to trust a passing one
//	shrink.go         making a failing script smaller, by steps
//	shrink_setup.go   by mirrors, handlers and options
//	shrink_numbers.go by numbers and durations
//
// # What holds for each script
//
// Each part of a script is a script: a step can run whatever happened before, and at worst has no
// effect. Shrink needs that, since it removes steps, mirrors and options in any order. So a Step
// names a mirror by a number, modulo the number of mirrors, and an object by its key.
//
// The script of a seed depends on each random draw before it. A new choice, a new weight or
// another order of draws changes the scripts of all seeds; scripts worth keeping are files in
// testdata/scripts of package simulation.
//
// # What it must not know
//
// The library, the source and the checks: it imports only the standard library. Steps have names,
// and package simulation has a function for each; a test there compares both. Runner is how a
// script is run: in a worker process by the command, by a function in tests.
//
// # Where to begin
//
// Read Script and Step in script.go, and then choices, the table of steps, in generate.go. Shrink
// and Replay are independent of each other.
package script
