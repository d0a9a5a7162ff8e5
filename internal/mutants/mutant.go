package mutants

import "slices"

// A Mutant is one small fault: a stretch of one file's text, and what a
// careless or hostile hand would have written in its place. It lives in this
// list only; the file on disk is never changed.
type Mutant struct {
	// Name is a short slug that reads as a sentence without its subject:
	// "forgets-an-index-on-delete". It is unique in the list.
	Name string
	// Guards are the numbers of the guarantees and faults that the mutant
	// breaks: "G7", "B21".
	Guards []string
	// File is the file that is changed, with slashes, relative to the
	// module's root: "indexes.go".
	File string
	// From is the exact text that is replaced, and occurs exactly once in
	// File; To is what replaces it.
	From, To string
	// Package is the package whose test must fail, as the go command names it
	// it at the module's root: guarantees, "./kubeapi". Empty is the root package.
	Package string
	// Test is the whole name of the one top-level test that must fail. It
	// states a behaviour, and was not written for the line that is changed.
	Test string
	// Fault is one sentence: what would go wrong for a user.
	Fault string
}

// guarantees is the package of the numbered tests.
const guarantees = "./internal/guarantees"

// All is every mutant of the project, in the order in which they are run: those
// of the guarantees first, then those of the faults. The caller owns the slice.
func All() []Mutant {
	return slices.Concat(
		orderMutants,
		syncMutants,
		versionMutants,
		objectMutants,
		lifecycleMutants,
		readerMutants,
		requestMutants,
		faultMutants,
	)
}

// pkg is the mutant's package as the go command names it.
func (m Mutant) pkg() string {
	if m.Package == "" {
		return "."
	}
	return m.Package
}
