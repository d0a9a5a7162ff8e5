// Package mutants keeps small faults that the project's tests must notice.
//
// A test that cannot fail is worse than none, and whether it can is not seen by
// looking at it. So this package has a list of faults as a tired or hostile colleague
// might make them: to forget an index on a deletion, to record a version before the
// write, to count synced early. Each breaks a guarantee (G1 to G14) or brings back a
// fault that users of other caches know (B1 to B26), and names the one existing test
// that must fail because of it.
//
//	go run ./internal/mutants/cmd
//
// applies them one at a time, to copies that the go command is given with
// -overlay; the files on disk are never touched. A mutant is killed if the package
// still compiles and the named test fails, by whatever it fails: an assertion, a
// panic, a deadlock. One that survives is a hole in the tests and fails the run. So
// does one that has lost its place in a file that has moved on, does not compile, or
// names a test that was not run: it proves nothing any more. Nor does one whose test was
// not over in time: that may be the machine's doing, and a test that waits in virtual
// time says by itself what it waits for. Before all this each named test must pass
// without any mutant.
//
// The tests of this package are run with all others and try no mutant of the list.
// They see that each still applies and is still Go, that its test exists, and that no
// guarantee or fault has fewer mutants than it must have.
//
// # To add a mutant
//
// Add an element to one of the lists (list_g_*.go for guarantees, list_b_*.go for
// faults), then try it:
//
//	go run ./internal/mutants/cmd -v -only name-of-the-mutant
//
// The test may not be written for the mutant's line. If a mutant survives, the test
// that is missing states a behaviour of which the mutant is one breach of many. A
// mutant that changes nothing that anybody could notice is none: take it off the list.
//
// Its test should take a second or two at most. Mutants within one function's body are built
// together, as copies of their functions of which the environment variable MUTANT of the test's
// process chooses one; a mutant of anything else, of a function that recovers, or that does not
// compile, is built alone, without the test files that its test does not use.
package mutants
