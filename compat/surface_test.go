package compat

import (
	"go/types"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// excluded is what need not agree, each with its reason.
var excluded = map[string]string{
	"StoreOption":           "a function of an unexported type: nobody can call or write one, so that it exists and fits its constructors is all that can be asked",
	"ThreadSafeStoreOption": "as StoreOption",
	"Indices":               "a map of an unexported type: only an empty one can be made, for NewThreadSafeStore",
}

// TestTheLibraryHasTierCoreWithClientGosSignatures compares every identifier of
// tier core, and whatever their signatures need. Removing or changing any of them
// in the library makes it fail, with the name.
func TestTheLibraryHasTierCoreWithClientGosSignatures(t *testing.T) {
	ours, theirs := packages(t)
	names := withNeeds(theirs, coreNames(readTable(t)))
	require.Greater(t, len(names), 80, "the table has lost its core")
	compare(t, ours, theirs, names)
}

// TestWhatElseHasANameOfClientGosAgrees: a name that means one thing there and
// another here would compile after an import swap and then surprise.
func TestWhatElseHasANameOfClientGosAgrees(t *testing.T) {
	ours, theirs := packages(t)
	compare(t, ours, theirs, commonNames(ours, theirs))
}

// TestWhatIsExcludedExistsAndHasAReason: what is not compared must still be there.
func TestWhatIsExcludedExistsAndHasAReason(t *testing.T) {
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

// coreNames are the identifiers that have a row of tier core.
func coreNames(rows []row) []string {
	names := map[string]bool{}
	for _, r := range rows {
		if r.tier == "core" {
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

// TestNeedsAreFollowed shows that the closure reaches what no row of tier core
// names: Queue's HasSyncedChecker returns a DoneChecker.
func TestNeedsAreFollowed(t *testing.T) {
	_, theirs := packages(t)
	require.Contains(t, withNeeds(theirs, []string{"Config"}), "DoneChecker")
}
