package main

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// describe returns the sorted lines of a package's exported API.
func describe(pkg *types.Package) string {
	d := &description{pkg: pkg}
	scope := pkg.Scope()
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		if object.Exported() {
			d.addObject(object)
		}
	}
	slices.Sort(d.lines)
	return strings.Join(d.lines, "")
}

type description struct {
	pkg   *types.Package
	lines []string
}

func (d *description) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format+"\n", args...))
}

// text returns a type without the paths of packages, and without the name of this one.
func (d *description) text(t types.Type) string { return types.TypeString(t, d.qualifier) }

func (d *description) qualifier(other *types.Package) string {
	if other == d.pkg {
		return ""
	}
	return other.Name()
}

func (d *description) addObject(object types.Object) {
	switch object := object.(type) {
	case *types.Const:
		d.add("const %s %s", object.Name(), d.text(object.Type()))
	case *types.Var:
		d.add("var %s %s", object.Name(), d.text(object.Type()))
	case *types.Func:
		d.add("func %s%s", object.Name(), d.signature(object))
	case *types.TypeName:
		d.addType(object)
	}
}

// signature returns type parameters, parameters and results.
func (d *description) signature(f *types.Func) string {
	return strings.TrimPrefix(d.text(f.Type()), "func")
}

func (d *description) addType(name *types.TypeName) {
	if alias, ok := name.Type().(*types.Alias); ok {
		d.add("type %s%s = %s", name.Name(), d.parameters(alias.TypeParams()), d.text(alias.Rhs()))
		return
	}
	named, ok := name.Type().(*types.Named)
	if !ok {
		return // an error of the type checker, which has been reported
	}
	title := name.Name() + d.parameters(named.TypeParams())
	owner := name.Name() + parameterNames(named.TypeParams())
	switch under := named.Underlying().(type) {
	case *types.Struct:
		d.add("type %s struct", title)
		d.addFields(owner, under)
		d.addMethods(owner, named)
	case *types.Interface:
		d.addInterface(title, owner, under)
	default:
		d.add("type %s %s", title, d.text(under))
		d.addMethods(owner, named)
	}
}

// parameters returns a list of type parameters with their constraints in brackets.
func (d *description) parameters(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var all []string
	for parameter := range list.TypeParams() {
		all = append(all, parameter.Obj().Name()+" "+d.text(parameter.Constraint()))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// parameterNames returns the names of a list of type parameters in brackets.
func parameterNames(list *types.TypeParamList) string {
	if list.Len() == 0 {
		return ""
	}
	var all []string
	for parameter := range list.TypeParams() {
		all = append(all, parameter.Obj().Name())
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// addFields adds exported fields, and those of embedded structs that are not exported.
func (d *description) addFields(owner string, s *types.Struct) {
	for field := range s.Fields() {
		if field.Exported() {
			d.add("field %s.%s %s", owner, field.Name(), d.text(field.Type()))
			continue
		}
		embedded, isStruct := field.Type().Underlying().(*types.Struct)
		if field.Embedded() && isStruct {
			d.addFields(owner, embedded)
		}
	}
}

// addInterface adds all methods, embedded ones too.
func (d *description) addInterface(title, owner string, i *types.Interface) {
	kind := "interface"
	if !i.IsMethodSet() {
		kind = d.text(i) // a constraint
	}
	d.add("type %s %s", title, kind)
	isSealed := false
	for method := range i.Methods() {
		if !method.Exported() {
			isSealed = true
			continue
		}
		d.add("method %s.%s%s", owner, method.Name(), d.signature(method))
	}
	if isSealed {
		d.add("method %s has unexported methods", owner)
	}
}

// addMethods adds the methods of a type and of its pointer.
func (d *description) addMethods(owner string, named *types.Named) {
	values := types.NewMethodSet(named)
	pointers := types.NewMethodSet(types.NewPointer(named))
	for selection := range pointers.Methods() {
		method, ok := selection.Obj().(*types.Func)
		if !ok || !method.Exported() {
			continue
		}
		receiver := "*" + owner
		if values.Lookup(method.Pkg(), method.Name()) != nil {
			receiver = owner
		}
		signature := strings.TrimPrefix(d.text(selection.Type()), "func")
		d.add("method (%s) %s%s", receiver, method.Name(), signature)
	}
}
