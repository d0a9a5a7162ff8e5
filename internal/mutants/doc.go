// Package mutants has small faults that the project's tests must notice.
//
// A test that cannot fail is worse than none. So this package has a list of plausible
// faults, such as forgetting an index on a deletion, recording a version before the write,
// or reporting synced too early. Each breaks a guarantee (G1 to G14) or reintroduces a known
// fault of other caches (B1 and later), and names the one existing test that must fail.
//
//	go run ./internal/mutants/cmd
//
// applies them one at a time, to copies of the files that the go command reads with
// -overlay; the files on disk are not changed. A mutant is killed if the package compiles and
// the named test fails: by an assertion, a panic or a deadlock. The run fails if a mutant
// survives, because the tests have a gap. It also fails if a mutant proves nothing: its code
// is no longer there, it does not compile, its test did not run, or its test timed
// out, which may be due to a slow machine. Each named test must first pass without a mutant.
//
// The tests of this package try no mutant. They check that each mutant applies and parses,
// that its test exists, and that each guarantee and fault has enough mutants. With -check the
// command compiles all mutants, too, and runs no test.
//
// # To add a mutant
//
// Add an element to one of the lists (list_g_*.go for guarantees, list_b_*.go for
// faults), then try it:
//
//	go run ./internal/mutants/cmd -v -only name-of-the-mutant
//
// Choose as From the smallest expression or statement that the function has once: the less it
// contains, the fewer changes it must follow. Do not write the test for the mutant's line. If a
// mutant survives, write the missing test of a behavior, which the mutant breaks in one of many
// ways. Remove a mutant that has no observable effect.
//
// # If the code of a mutant changes
//
// Code that is reformatted or moved within its package is found. If it is changed, set In and From
// to the code that can have the fault now, and To to the same fault, then try the mutant as above.
// If no code can have the fault, remove the mutant, and name it in docs/testing.md with the reason.
//
// # How mutants are built
//
// The test should take at most two seconds. Mutants of function bodies are built together, as
// copies of their functions; the environment variable MUTANT of the test process selects one.
// All other mutants, those of functions that recover and those that do not compile are built
// one by one, without the test files that their test does not use.
package mutants
