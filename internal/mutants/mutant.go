package mutants

import "slices"

// A Mutant is one small fault: a text in one file and its replacement. The file on disk is
// never changed.
type Mutant struct {
	// Name is a unique slug that describes the fault, a sentence without subject:
	// "forgets-an-index-on-delete".
	Name string
	// Guards are the numbers of the guarantees that the mutant breaks and of the faults that it
	// reintroduces: "G7", "B21".
	Guards []string
	// File is the changed file, with slashes, relative to the module's root: "index.go".
	File string
	// From is the replaced text, which occurs exactly once in File; To is its replacement.
	From, To string
	// Package is the package of Test, relative to the module's root: guarantees, "./kubeapi".
	// Empty is the root package.
	Package string
	// Test is the name of the top-level test that must fail. It states a behavior, and was not
	// written for the changed line.
	Test string
	// Fault is one sentence: the consequence for a user.
	Fault string
}

// guarantees is the package of the numbered tests.
const guarantees = "./internal/guarantees"

// All returns all mutants in the order in which they run: those of the guarantees, then those
// of the faults. The caller owns the slice.
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
