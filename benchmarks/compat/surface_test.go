package compat

import (
	"go/types"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// excluded is what need not agree, each with its reason. It must be there all the same.
var excluded = map[string]string{
	"StoreOption":           "a function of an unexported type: nobody can call or write one, so that it exists and fits its constructors is all that can be asked",
	"ThreadSafeStoreOption": "as StoreOption",
	"New":                   "returns a *Mirror, which is a Controller (assignable_test.go)",
	"Indices":               "a map of an unexported type: only an empty one can be made, for NewThreadSafeStore",
}

// later are the identifiers of the table that the library does not have yet, each with
// its reason. Everything else in the table is asserted.
var later = map[string]string{}

// TestTheLibraryHasATierWithClientGosSignatures compares every identifier of a tier,
// and whatever their signatures need. Removing or changing any of them in the library
// makes it fail, with the name.
func TestTheLibraryHasATierWithClientGosSignatures(t *testing.T) {
	ours, theirs := packages(t)
	for tier, least := range map[string]int{"core": 80, "informer": 70} {
		t.Run(tier, func(t *testing.T) {
			names := withNeeds(theirs, promised(readTable(t), tier))
			require.Greater(t, len(names), least, "the table has lost rows")
			compare(t, ours, theirs, names)
		})
	}
}

// TestALibraryThatLosesANameOfTheTableFails guards the guard: of a package that has
// nothing, each promised name is said to be missing.
func TestALibraryThatLosesANameOfTheTableFails(t *testing.T) {
	_, theirs := packages(t)
	for _, tier := range []string{"core", "informer"} {
		for _, name := range promised(readTable(t), tier) {
			c := &comparer{ours: types.NewPackage(oursPath, "cache"), theirs: theirs, skip: skip}
			c.identifier(name)
			require.Equal(t, []string{name + ": missing"}, c.problems)
		}
	}
}

// TestEveryRowOfTheTableIsAssertedOrNamedAsComing: no row is lost between the tiers,
// and names that are listed as coming are neither there already nor made up.
func TestEveryRowOfTheTableIsAssertedOrNamedAsComing(t *testing.T) {
	ours, _ := packages(t)
	rows := readTable(t)
	asserted := append(promised(rows, "core"), promised(rows, "informer")...)
	coming := map[string]bool{}
	for _, r := range rows {
		if _, isComing := later[r.owner()]; isComing {
			coming[r.owner()] = true
			continue
		}
		require.Contains(t, asserted, r.owner())
	}
	for name, reason := range later {
		require.NotEmpty(t, reason, name)
		require.True(t, coming[name], "%s is not in the table", name)
		require.Nil(t, ours.Scope().Lookup(name), "%s is there: take it off the list of what is to come", name)
	}
}

// TestWhatElseHasANameOfClientGosAgrees: a name that means one thing there and
// another here would compile after an import swap and then surprise.
func TestWhatElseHasANameOfClientGosAgrees(t *testing.T) {
	ours, theirs := packages(t)
	compare(t, ours, theirs, commonNames(ours, theirs))
}

// TestEveryExclusionExistsAndHasAReason: excluded names must still exist.
func TestEveryExclusionExistsAndHasAReason(t *testing.T) {
	ours, theirs := packages(t)
	for name, reason := range excluded {
		require.NotEmpty(t, reason, name)
		require.NotNil(t, theirs.Scope().Lookup(name), name)
		require.NotNil(t, ours.Scope().Lookup(name), name)
	}
}

// TestValuesThatProgramsWriteWithoutFieldNamesHaveTheSameFields: KeyError{obj,
// err} and its like compile only while there are exactly these fields, in this
// order; for these structs a further field would be one too many.
func TestValuesThatProgramsWriteWithoutFieldNamesHaveTheSameFields(t *testing.T) {
	ours, theirs := packages(t)
	c := &comparer{ours: ours, theirs: theirs, skip: skip}
	for _, name := range []string{"KeyError", "Delta", "DeletedFinalStateUnknown", "ObjectName", "BookmarkInfo"} {
		have, want := ours.Scope().Lookup(name), theirs.Scope().Lookup(name)
		require.NotNil(t, have, name)
		c.equal(name, have.Type().Underlying(), want.Type().Underlying())
	}
	require.Empty(t, c.problems, lines(c.problems))
}

func skip(name string) bool {
	_, ok := excluded[name]
	return ok
}

func compare(t *testing.T, ours, theirs *types.Package, names []string) {
	t.Helper()
	c := &comparer{ours: ours, theirs: theirs, skip: skip}
	for _, name := range names {
		c.identifier(name)
	}
	for _, problem := range c.sorted() {
		t.Error(problem)
	}
}

// promised are the identifiers that have a row of the tier and are not named as coming.
func promised(rows []row, tier string) []string {
	names := map[string]bool{}
	for _, r := range rows {
		if _, isComing := later[r.owner()]; r.tier == tier && !isComing {
			names[r.owner()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// withNeeds adds the named types that the identifiers mention, and those that
// these mention, until there are no more: a tier includes what its signatures
// need.
func withNeeds(p *types.Package, names []string) []string {
	all := map[string]bool{}
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		if all[name] {
			continue
		}
		all[name] = true
		more := map[string]bool{}
		mentions(p, name, more)
		names = append(names, slices.Sorted(maps.Keys(more))...)
	}
	return slices.Sorted(maps.Keys(all))
}

// mentions collects the types of p that one identifier mentions: in a type's
// definition, fields and methods, and in the signature of anything else.
func mentions(p *types.Package, name string, found map[string]bool) {
	object := p.Scope().Lookup(name)
	if object == nil {
		return
	}
	if _, isType := object.(*types.TypeName); !isType {
		needs(object.Type(), p, found)
		return
	}
	if skip(name) {
		return
	}
	if named, ok := object.Type().(*types.Named); ok {
		constraintNeeds(named.TypeParams(), p, found)
	}
	if structure, ok := object.Type().Underlying().(*types.Struct); ok {
		for field := range structure.Fields() {
			if field.Exported() && !skip(name+"."+field.Name()) {
				needs(field.Type(), p, found)
			}
		}
	} else {
		needs(object.Type().Underlying(), p, found)
	}
	for method := range methodSet(object.Type(), !types.IsInterface(object.Type())).Methods() {
		if method.Obj().Exported() && !skip(name+"."+method.Obj().Name()) {
			needs(method.Type(), p, found)
		}
	}
}

// commonNames are the exported identifiers that both packages have.
func commonNames(ours, theirs *types.Package) []string {
	var names []string
	for _, name := range theirs.Scope().Names() {
		if object := theirs.Scope().Lookup(name); object.Exported() && ours.Scope().Lookup(name) != nil {
			names = append(names, name)
		}
	}
	return names
}

// TestNeedsAreFollowed shows that the closure reaches what no row of tier core names:
// Queue's HasSyncedChecker returns a DoneChecker. A type parameter's constraint and the
// arguments of a generic type are needs like any other.
func TestNeedsAreFollowed(t *testing.T) {
	_, theirs := packages(t)
	require.Contains(t, withNeeds(theirs, []string{"Config"}), "DoneChecker")
	require.Contains(t, withNeeds(theirs, []string{"NewTypedSharedIndexInformer"}), "Object")
	require.Contains(t, withNeeds(theirs, []string{"TypedFilteringResourceEventHandler"}), "DeletedObject")
}
