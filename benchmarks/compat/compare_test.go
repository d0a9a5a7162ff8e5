package compat

import (
	"fmt"
	"go/constant"
	"go/types"
	"slices"
	"strings"
)

// comparer compares the identifiers of two packages. A named type of the one is
// the same as the one of that name in the other; every other type must be
// identical.
type comparer struct {
	ours, theirs *types.Package
	// skip says that a field or method need not be there, or that what a type
	// stands for is not compared.
	skip func(name string) bool

	problems []string
}

func (c *comparer) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// identifier compares what the two packages have under a name.
func (c *comparer) identifier(name string) {
	theirs := c.theirs.Scope().Lookup(name)
	ours := c.ours.Scope().Lookup(name)
	switch {
	case theirs == nil:
		c.problem("%s: client-go does not have it", name)
		return
	case ours == nil:
		c.problem("%s: missing", name)
		return
	}
	switch theirs := theirs.(type) {
	case *types.Const:
		c.constant(name, ours, theirs)
	case *types.Var:
		if _, ok := ours.(*types.Var); !ok {
			c.problem("%s: want a variable, have %s", name, ours)
			return
		}
		c.equal(name, ours.Type(), theirs.Type())
	case *types.Func:
		if _, ok := ours.(*types.Func); !ok {
			c.problem("%s: want a function, have %s", name, ours)
			return
		}
		if !c.skip(name) {
			c.equal(name, ours.Type(), theirs.Type())
		}
	case *types.TypeName:
		ours, ok := ours.(*types.TypeName)
		if !ok {
			c.problem("%s: want a type", name)
			return
		}
		c.typeName(name, ours, theirs)
	}
}

func (c *comparer) constant(name string, ours types.Object, theirs *types.Const) {
	have, ok := ours.(*types.Const)
	if !ok {
		c.problem("%s: want a constant, have %s", name, ours)
		return
	}
	c.equal(name, have.Type(), theirs.Type())
	if have.Val().ExactString() != theirs.Val().ExactString() {
		c.problem("%s: value is %s, want %s", name, text(have.Val()), text(theirs.Val()))
	}
}

func text(v constant.Value) string { return v.ExactString() }

// typeName compares two types of one name: what they are made of, and what they
// can do.
func (c *comparer) typeName(name string, ours, theirs *types.TypeName) {
	if ours.IsAlias() != theirs.IsAlias() {
		c.problem("%s: alias is %t, want %t", name, ours.IsAlias(), theirs.IsAlias())
		return
	}
	if c.skip(name) {
		return
	}
	if !c.sameParameters(parametersOf(ours), parametersOf(theirs)) {
		c.problem("%s: type parameters are %s, want %s", name, parametersText(ours), parametersText(theirs))
		return
	}
	have, want := ours.Type().Underlying(), theirs.Type().Underlying()
	switch want := want.(type) {
	case *types.Interface:
		c.equal(name, have, want)
		return
	case *types.Struct:
		have, ok := have.(*types.Struct)
		if !ok {
			c.problem("%s: want a struct, have %s", name, ours.Type().Underlying())
			return
		}
		c.fields(name, have, want)
	default:
		c.equal(name, have, want)
	}
	if !theirs.IsAlias() {
		c.methods(name, ours.Type(), theirs.Type())
	}
}

// fields: ours may have more, and in another order.
func (c *comparer) fields(name string, ours, theirs *types.Struct) {
	for want := range theirs.Fields() {
		member := name + "." + want.Name()
		if !want.Exported() || c.skip(member) {
			continue
		}
		at := slices.IndexFunc(slices.Collect(ours.Fields()), func(f *types.Var) bool { return f.Name() == want.Name() })
		if at < 0 {
			c.problem("%s: field missing", member)
			continue
		}
		have := ours.Field(at)
		if have.Embedded() != want.Embedded() {
			c.problem("%s: embedded is %t, want %t", member, have.Embedded(), want.Embedded())
		}
		c.equal(member, have.Type(), want.Type())
	}
}

// methods: ours may have more. A method that a value has must not need a pointer.
func (c *comparer) methods(name string, ours, theirs types.Type) {
	for _, pointer := range []bool{false, true} {
		have, want := methodSet(ours, pointer), methodSet(theirs, pointer)
		for method := range want.Methods() {
			member := name + "." + method.Obj().Name()
			if !method.Obj().Exported() || c.skip(member) {
				continue
			}
			found := have.Lookup(nil, method.Obj().Name())
			if found == nil {
				c.problem("%s: method missing (receiver is a pointer: %t)", member, pointer)
				continue
			}
			c.equal(member, found.Type(), method.Type())
		}
	}
}

func methodSet(t types.Type, pointer bool) *types.MethodSet {
	if pointer {
		t = types.NewPointer(t)
	}
	return types.NewMethodSet(t)
}

func (c *comparer) equal(name string, ours, theirs types.Type) {
	if !c.same(ours, theirs) {
		c.problem("%s: have %s, want %s", name, types.TypeString(ours, qualifier), types.TypeString(theirs, qualifier))
	}
}

// qualifier leaves both packages' own names bare, so that texts can be compared.
func qualifier(p *types.Package) string {
	if p.Path() == oursPath || p.Path() == theirsPath {
		return ""
	}
	return p.Name()
}

// same is types.Identical up to the names of the two packages.
func (c *comparer) same(ours, theirs types.Type) bool {
	if a, b := c.aliasOf(ours, c.ours), c.aliasOf(theirs, c.theirs); a != "" && a == b && c.skip(a) {
		// StoreOption is a function of an unexported type in both: the name is
		// all that there is to compare.
		return true
	}
	ours, theirs = types.Unalias(ours), types.Unalias(theirs)
	switch a := ours.(type) {
	case *types.Named:
		b, ok := theirs.(*types.Named)
		return ok && c.sameNamed(a, b)
	case *types.TypeParam:
		b, ok := theirs.(*types.TypeParam)
		return ok && a.Index() == b.Index()
	case *types.Pointer:
		b, ok := theirs.(*types.Pointer)
		return ok && c.same(a.Elem(), b.Elem())
	case *types.Slice:
		b, ok := theirs.(*types.Slice)
		return ok && c.same(a.Elem(), b.Elem())
	case *types.Array:
		b, ok := theirs.(*types.Array)
		return ok && a.Len() == b.Len() && c.same(a.Elem(), b.Elem())
	case *types.Map:
		b, ok := theirs.(*types.Map)
		return ok && c.same(a.Key(), b.Key()) && c.same(a.Elem(), b.Elem())
	case *types.Chan:
		b, ok := theirs.(*types.Chan)
		return ok && a.Dir() == b.Dir() && c.same(a.Elem(), b.Elem())
	case *types.Signature:
		b, ok := theirs.(*types.Signature)
		return ok && c.sameSignature(a, b)
	case *types.Interface:
		b, ok := theirs.(*types.Interface)
		return ok && c.sameInterface(a, b)
	case *types.Struct:
		b, ok := theirs.(*types.Struct)
		return ok && c.sameStruct(a, b)
	}
	return types.Identical(ours, theirs)
}

// aliasOf returns the name of an alias that is declared in p.
func (c *comparer) aliasOf(t types.Type, p *types.Package) string {
	alias, ok := t.(*types.Alias)
	if !ok || alias.Obj().Pkg() != p {
		return ""
	}
	return alias.Obj().Name()
}

func (c *comparer) sameNamed(a, b *types.Named) bool {
	if a.Obj().Pkg() != c.ours {
		return types.Identical(a, b)
	}
	if b.Obj().Pkg() != c.theirs || a.Obj().Name() != b.Obj().Name() || a.TypeArgs().Len() != b.TypeArgs().Len() {
		return false
	}
	for i := range a.TypeArgs().Len() {
		if !c.same(a.TypeArgs().At(i), b.TypeArgs().At(i)) {
			return false
		}
	}
	return true
}

func (c *comparer) sameSignature(a, b *types.Signature) bool {
	return a.Variadic() == b.Variadic() && c.sameParameters(a.TypeParams(), b.TypeParams()) &&
		c.sameTuple(a.Params(), b.Params()) && c.sameTuple(a.Results(), b.Results())
}

// sameParameters compares lists of type parameters: how many there are, and what each
// may stand for.
func (c *comparer) sameParameters(a, b *types.TypeParamList) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !c.same(a.At(i).Constraint(), b.At(i).Constraint()) {
			return false
		}
	}
	return true
}

func parametersOf(object *types.TypeName) *types.TypeParamList {
	if named, ok := object.Type().(*types.Named); ok {
		return named.TypeParams()
	}
	return nil
}

func parametersText(object *types.TypeName) string {
	text := []string{}
	for parameter := range parametersOf(object).TypeParams() {
		text = append(text, types.TypeString(parameter.Constraint(), qualifier))
	}
	return "[" + strings.Join(text, ", ") + "]"
}

func (c *comparer) sameTuple(a, b *types.Tuple) bool {
	if a.Len() != b.Len() {
		return false
	}
	for i := range a.Len() {
		if !c.same(a.At(i).Type(), b.At(i).Type()) {
			return false
		}
	}
	return true
}

// sameInterface compares whole method sets: what is embedded in one may be
// written out in the other. Methods are in order of their names in both.
func (c *comparer) sameInterface(a, b *types.Interface) bool {
	if a.NumMethods() != b.NumMethods() || a.IsComparable() != b.IsComparable() {
		return false
	}
	for i := range a.NumMethods() {
		x, y := a.Method(i), b.Method(i)
		if x.Name() != y.Name() || !c.same(x.Type(), y.Type()) {
			return false
		}
	}
	return true
}

func (c *comparer) sameStruct(a, b *types.Struct) bool {
	if a.NumFields() != b.NumFields() {
		return false
	}
	for i := range a.NumFields() {
		x, y := a.Field(i), b.Field(i)
		if x.Name() != y.Name() || x.Embedded() != y.Embedded() || !c.same(x.Type(), y.Type()) {
			return false
		}
	}
	return true
}

// needs collects the exported named types of p that t mentions.
func needs(t types.Type, p *types.Package, found map[string]bool) {
	switch t := t.(type) {
	case *types.Alias:
		if t.Obj().Pkg() == p && t.Obj().Exported() {
			found[t.Obj().Name()] = true
			return
		}
		needs(types.Unalias(t), p, found)
	case *types.Named:
		if t.Obj().Pkg() == p && t.Obj().Exported() {
			found[t.Obj().Name()] = true
		}
		for argument := range t.TypeArgs().Types() {
			needs(argument, p, found)
		}
	case *types.Map:
		needs(t.Key(), p, found)
		needs(t.Elem(), p, found)
	case interface{ Elem() types.Type }: // pointer, slice, array, channel
		needs(t.Elem(), p, found)
	case *types.Signature:
		constraintNeeds(t.TypeParams(), p, found)
		for v := range t.Params().Variables() {
			needs(v.Type(), p, found)
		}
		for v := range t.Results().Variables() {
			needs(v.Type(), p, found)
		}
	case *types.Interface:
		for m := range t.Methods() {
			needs(m.Type(), p, found)
		}
	}
}

// constraintNeeds collects what type parameters may stand for.
func constraintNeeds(parameters *types.TypeParamList, p *types.Package, found map[string]bool) {
	for parameter := range parameters.TypeParams() {
		needs(parameter.Constraint(), p, found)
	}
}

// sorted is a list of problems without repetitions, which methods that a type
// and its pointer both have would cause.
func (c *comparer) sorted() []string {
	slices.Sort(c.problems)
	return slices.Compact(c.problems)
}

func lines(list []string) string { return strings.Join(list, "\n") }
