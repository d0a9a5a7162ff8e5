package flow

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Config says what is analyzed, and which types are objects.
type Config struct {
	Fset *token.FileSet
	// IsObject reports whether a type is one whose fields are tracked.
	IsObject func(*types.TypeName) bool
	// IsPart reports whether a type may occur below an object.
	IsPart func(*types.TypeName) bool
	// IsLibrary reports whether a package is analyzed only to follow calls into it: its reads are
	// reported at the calls.
	IsLibrary func(*types.Package) bool
	// Anything is the object type that interface values of unknown origin may hold, or nil.
	Anything *types.TypeName
	// Facts returns the summary of a function of another package, or nil.
	Facts func(*types.Func) *FunctionFact
}

// analysis is one run.
type analysis struct {
	Config
	shapes    *shapes
	program   *ssa.Program
	functions []*ssa.Function
	summaries map[*ssa.Function]*summary
	flows     map[*ssa.Function]*functionFlow
	dynamic   *dynamicCalls
	found     map[use]struct{}
	// guess is set in the last rounds, in which a value without a known origin may be an object.
	guess bool
	facts map[*types.Func]*summary
	// holders caches which interface types Anything implements.
	holders map[types.Type]bool
}

// Analyze analyzes functions with bodies.
func Analyze(config Config, program *ssa.Program, functions []*ssa.Function) *Result {
	a := &analysis{
		Config:    config,
		shapes:    newShapes(),
		program:   program,
		functions: slices.Clone(functions),
		summaries: map[*ssa.Function]*summary{},
		flows:     map[*ssa.Function]*functionFlow{},
		found:     map[use]struct{}{},
		facts:     map[*types.Func]*summary{},
		holders:   map[types.Type]bool{},
	}
	slices.SortFunc(a.functions, func(f, g *ssa.Function) int {
		return cmp.Or(cmp.Compare(f.Pos(), g.Pos()), cmp.Compare(f.String(), g.String()))
	})
	for _, function := range a.functions {
		a.summaries[function] = newSummary(function.Signature)
		a.summaries[function].inline = a.isLibrary(function)
		a.flows[function] = newFunctionFlow(a, function)
	}
	a.dynamic = findDynamicCalls(a)
	a.repeat()
	a.guess = config.Anything != nil
	if a.guess {
		a.repeat()
	}
	return a.result()
}

// repeat analyzes all functions until no summary changes.
func (a *analysis) repeat() {
	for changed := true; changed; {
		changed = false
		for _, function := range a.functions {
			before := a.summaries[function].size()
			a.flows[function].run()
			if a.summaries[function].size() != before {
				changed = true
			}
		}
	}
}

func (a *analysis) isLibrary(function *ssa.Function) bool {
	pkg := PackageOf(function)
	return pkg != nil && a.IsLibrary != nil && a.IsLibrary(pkg)
}

// PackageOf returns a function's package, also for wrappers and instances.
func PackageOf(function *ssa.Function) *types.Package {
	for function.Parent() != nil {
		function = function.Parent()
	}
	if function.Pkg != nil {
		return function.Pkg.Pkg
	}
	if origin := function.Origin(); origin != nil && origin.Pkg != nil {
		return origin.Pkg.Pkg
	}
	if object := function.Object(); object != nil {
		return object.Pkg()
	}
	return nil
}

// objectOf returns the object type that a value has, possibly behind pointers, or nil.
func (a *analysis) objectOf(t types.Type) *types.TypeName {
	name := namedOf(t)
	if name == nil || !a.IsObject(name) {
		return nil
	}
	return name
}

// holdsObject returns the object type that a container's elements or exported fields have.
func (a *analysis) holdsObject(t types.Type, depth int) *types.TypeName {
	if object := a.objectOf(t); object != nil {
		return object
	}
	if depth == 0 {
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return a.holdsObject(u.Elem(), depth-1)
	case *types.Slice:
		return a.holdsObject(u.Elem(), depth-1)
	case *types.Array:
		return a.holdsObject(u.Elem(), depth-1)
	case *types.Map:
		return a.holdsObject(u.Elem(), depth-1)
	case *types.Struct:
		for i := range u.NumFields() {
			if !u.Field(i).Exported() {
				continue
			}
			if object := a.holdsObject(u.Field(i).Type(), depth-1); object != nil {
				return object
			}
		}
	}
	return nil
}

// isTracked reports whether values of a type can hold parts of objects.
func (a *analysis) isTracked(t types.Type) bool {
	if _, isParam := types.Unalias(t).(*types.TypeParam); isParam {
		return true
	}
	if a.objectOf(t) != nil {
		return true
	}
	t = a.shapes.element(t)
	if _, isParam := types.Unalias(t).(*types.TypeParam); isParam {
		return true
	}
	name := namedOf(t)
	if name != nil && a.IsObject(name) {
		return false // the elements of a container are objects by their type
	}
	if name != nil && a.IsPart(name) {
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		if a.objectOf(a.shapes.element(u.Elem())) != nil {
			return false
		}
		return a.isTracked(u.Elem()) || a.shapes.isScalar(u.Elem())
	case *types.Interface:
		return t.String() != "error"
	}
	return false
}

// canHold reports whether Anything has the methods of an interface type.
func (a *analysis) canHold(t types.Type) bool {
	holds, known := a.holders[t]
	if !known {
		u := t.Underlying().(*types.Interface)
		holds = types.Implements(types.NewPointer(a.Anything.Type()), u)
		a.holders[t] = holds
	}
	return holds
}

// mayHoldAnything reports whether an interface type is one in which programs pass objects around:
// any, runtime.Object, metav1.Object and those that include them.
func (a *analysis) mayHoldAnything(t types.Type) bool {
	if a.Anything == nil {
		return false
	}
	u, ok := t.Underlying().(*types.Interface)
	if !ok || !a.canHold(t) {
		return false
	}
	if u.NumMethods() == 0 {
		return true
	}
	for i := range u.NumMethods() {
		switch u.Method(i).Name() {
		case "GetObjectKind", "DeepCopyObject", "GetName", "GetNamespace", "GetLabels":
			return true
		}
	}
	return false
}
