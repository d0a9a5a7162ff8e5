package mutants

import "slices"

// A Mutant is one small fault: the code of a declaration and its replacement. The files on disk
// are never changed.
type Mutant struct {
	// Name is a unique slug that describes the fault, a sentence without subject:
	// "forgets-an-index-on-delete".
	Name string
	// Guards are the numbers of the guarantees that the mutant breaks and of the faults that it
	// reintroduces: "G7", "B21".
	Guards []string
	// Dir is the directory of the changed package, with slashes, relative to the module's root:
	// "internal/table". Empty is the root package.
	Dir string
	// In is the declaration of the package that has the replaced code: a function, "Type.method",
	// a variable or a constant. If it does not have the code, it may be anywhere in the package,
	// once.
	In string
	// From is the replaced code: an expression, an element of a composite literal, consecutive
	// statements or consecutive cases. A case without statements stands for the head of a case.
	// Format and comments do not count.
	From string
	// Nth says which one is replaced, from 1, if In has the code several times.
	Nth int
	// To is the replacement.
	To string
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

// backoffTests is the package of the tests of the backoff.
const backoffTests = "./internal/backoff"

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

// pkg is the package of the mutant's test as the go command names it.
func (m Mutant) pkg() string {
	if m.Package == "" {
		return "."
	}
	return m.Package
}

// changedPackage is the mutant's own package as the go command names it.
func (m Mutant) changedPackage() string {
	if m.Dir == "" {
		return "."
	}
	return "./" + m.Dir
}
