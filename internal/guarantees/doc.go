// Package guarantees tests the promises of this library: the guarantees G1 to G14 of the
// root package's documentation, and the absence of the faults B1 to B32 of docs/faults.md.
//
// The tests use only the exported API, so they survive changes of structure, and virtual
// time, so durations and request counts are exact. The tests of a promise are in the files
// that begin with its number: g06_*_test.go has TestG6*. Files without a number have tests
// of other documented behavior, by subject. rig_test.go begins with an index of the rigs.
//
// Tests that need unexported names are next to the code in the root package.
package guarantees
