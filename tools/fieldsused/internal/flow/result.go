package flow

import (
	"cmp"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Use is one use of a field.
type Use struct {
	// Object is the type of the object.
	Object *types.TypeName
	// Path is the field's path, empty for the whole object.
	Path string
	Kind Kind
	Site Site
	// How says to which code the value escapes.
	How string
}

// Result is what the analysis found.
type Result struct {
	// Uses are sorted by path, then by place.
	Uses []Use
	// Facts are the functions' summaries for other packages.
	Facts map[*types.Func]*FunctionFact
}

func (a *analysis) result() *Result {
	result := &Result{Facts: map[*types.Func]*FunctionFact{}}
	seen := map[Use]bool{}
	for found := range a.found {
		u, ok := a.finish(found)
		if !ok || seen[u] {
			continue
		}
		seen[u] = true
		result.Uses = append(result.Uses, u)
	}
	slices.SortFunc(result.Uses, compareUses)
	for function, summary := range a.summaries {
		object, ok := function.Object().(*types.Func)
		if ok && function.Origin() == nil && function.Synthetic == "" {
			result.Facts[object] = summary.fact()
		}
	}
	return result
}

func compareUses(a, b Use) int {
	return cmp.Or(
		cmp.Compare(a.Path, b.Path),
		cmp.Compare(a.Site.File, b.Site.File),
		cmp.Compare(a.Site.Line, b.Site.Line),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.How, b.How),
		cmp.Compare(a.Site.Pos, b.Site.Pos),
	)
}

// finish brings a use into its final form. It returns false for uses that read nothing.
func (a *analysis) finish(found use) (Use, bool) {
	u := Use{Object: found.of.root, Kind: found.kind, Site: found.site, How: found.how}
	var at types.Type
	u.Path, at = a.shapes.clip(found.of.root, found.of.path)
	if u.Path == "" && found.of.path != "" {
		return u, false // the value was not a part of this object
	}
	isObject := u.Path == ""
	switch {
	case isObject && u.Kind == Presence:
		return u, false
	case isObject || at == nil:
	case u.Kind == Presence && a.shapes.isScalar(at):
		u.Kind = Read
	case u.Kind == Escaped && a.hasNoFields(at):
		u.Kind = Read
		u.How = ""
	}
	return u, true
}

// hasNoFields reports whether a value that escapes has nothing that could be selected.
func (a *analysis) hasNoFields(t types.Type) bool {
	if a.shapes.isScalar(t) {
		return true
	}
	m, ok := a.shapes.element(t).Underlying().(*types.Map)
	return ok && a.shapes.isScalar(m.Elem())
}

// Parts are the types that may occur below an object.
type Parts struct {
	names map[*types.TypeName]bool
	// structs are their underlying types, which are also those of the types that a program declares
	// by one of them.
	structs map[types.Type]bool
}

// PartsOf returns the parts of an object's type, with the type itself.
func PartsOf(object *types.TypeName) Parts {
	parts := Parts{names: map[*types.TypeName]bool{}, structs: map[types.Type]bool{}}
	parts.add(object.Type())
	return parts
}

// Has reports whether a type is a part, or one that is declared by a part, as Own in
// "type Own corev1.PodSpec".
func (p Parts) Has(name *types.TypeName) bool {
	return p.names[name] || p.structs[name.Type().Underlying()]
}

func (p Parts) add(t types.Type) {
	if named, ok := types.Unalias(t).(*types.Named); ok {
		name := named.Origin().Obj()
		if p.names[name] {
			return
		}
		p.names[name] = true
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		p.add(u.Elem())
	case *types.Slice:
		p.add(u.Elem())
	case *types.Array:
		p.add(u.Elem())
	case *types.Map:
		p.add(u.Elem())
	case *types.Struct:
		p.addStruct(u)
	}
}

func (p Parts) addStruct(u *types.Struct) {
	if u.NumFields() > 0 {
		p.structs[u] = true
	}
	for field := range u.Fields() {
		p.add(field.Type())
	}
}

// Functions returns the functions with bodies. It leaves out wrappers of promoted methods, which
// calls through interfaces do not need here.
func Functions(all map[*ssa.Function]bool) []*ssa.Function {
	var functions []*ssa.Function
	for function := range all {
		isWrapper := strings.HasPrefix(function.Synthetic, "wrapper for")
		if len(function.Blocks) > 0 && !isWrapper {
			functions = append(functions, function)
		}
	}
	return functions
}

// WithoutGenerics leaves out generic functions, whose instances are analyzed instead.
func WithoutGenerics(functions []*ssa.Function) []*ssa.Function {
	return slices.DeleteFunc(functions, func(function *ssa.Function) bool {
		return function.TypeParams().Len() > 0 && len(function.TypeArgs()) == 0
	})
}
