// Package guarantees has the tests of what this project promises: the guarantees G1 to
// G14 of the root package's documentation, and the faults B1 to B26 of docs/faults.md
// that it must not have.
//
// They use the exported API alone, so that they hold for whatever is behind it, and
// virtual time, so that they count exactly. Each promise has the files that begin with
// its number: g06_*_test.go has TestG6 and the tests that follow. The files without a
// number have the tests of single documented behaviors, by subject, and the rigs that all
// tests share: misbehaving sources, mirrors in all their forms, and recording handlers.
//
// Tests that need unexported names stand beside the code in the root package.
package guarantees
