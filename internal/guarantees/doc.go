// Package guarantees has the tests of what this project promises: the guarantees G1 to
// G14 of the root package's documentation, and the faults B1 to B26 of docs/faults.md
// that it must not have.
//
// They use the exported API alone, so that they hold for whatever is behind it, and
// virtual time, so that they count exactly. Each promise has the files that begin with
// its number: g06_*_test.go has TestG6 and what follows. The other files are what the
// tests share: sources that misbehave, mirrors of them in all their forms, and handlers
// that record their calls.
//
// Tests of a part of the implementation stand beside it in the root package and have no
// number.
package guarantees
