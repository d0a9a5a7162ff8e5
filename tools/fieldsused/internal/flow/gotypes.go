package flow

import (
	"go/types"
	"reflect"
	"slices"
	"strings"
)

// shapes answers questions about Go types as kubeapi's decoders see them. It caches what needs
// method sets.
type shapes struct {
	leaves map[types.Type]bool
}

func newShapes() *shapes { return &shapes{leaves: map[types.Type]bool{}} }

// isLeaf reports whether a path cannot descend into a type, by the rule of kubeapi: it decodes its
// own JSON, or it is a list that is a message in protobuf.
func (s *shapes) isLeaf(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return false
	}
	if leaf, known := s.leaves[named]; known {
		return leaf
	}
	leaf := decodesItself(named)
	s.leaves[named] = leaf
	return leaf
}

func decodesItself(named *types.Named) bool {
	if types.IsInterface(named) {
		return false
	}
	methods := types.NewMethodSet(types.NewPointer(named))
	has := func(name string) bool { return methods.Lookup(named.Obj().Pkg(), name) != nil }
	if has("UnmarshalJSON") || has("UnmarshalText") {
		return !isUnstructured(named)
	}
	_, isStruct := named.Underlying().(*types.Struct)
	return has("Unmarshal") && !isStruct
}

// element returns the type in which a path continues, behind pointers and lists.
func (s *shapes) element(t types.Type) types.Type {
	for !s.isLeaf(t) {
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			if isByte(u.Elem()) {
				return t
			}
			t = u.Elem()
		case *types.Array:
			t = u.Elem()
		default:
			return t
		}
	}
	return t
}

// isScalar reports whether nothing can be selected below a value of the type, so that using it at
// all means reading it.
func (s *shapes) isScalar(t types.Type) bool {
	t = s.element(t)
	if s.isLeaf(t) {
		return true
	}
	switch t.Underlying().(type) {
	case *types.Basic, *types.Slice, *types.Chan, *types.Signature:
		return true
	}
	return false
}

func isByte(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Kind() == types.Byte
}

// fieldName returns a field's name in JSON. It is empty for an embedded struct, whose fields belong
// to the outer object. ok is false for fields that are never decoded.
func (s *shapes) fieldName(of *types.Struct, index int) (name string, ok bool) {
	field := of.Field(index)
	tag := reflect.StructTag(of.Tag(index)).Get("json")
	if tag == "-" {
		return "", false
	}
	name, _, _ = strings.Cut(tag, ",")
	if name != "" {
		return name, true
	}
	if field.Anonymous() {
		_, isStruct := s.element(field.Type()).Underlying().(*types.Struct)
		if isStruct {
			return "", true
		}
	}
	return field.Name(), true
}

// step returns the type of a field or key of a type, or nil if it has none.
func (s *shapes) step(t types.Type, name string) types.Type {
	t = s.element(t)
	if s.isLeaf(t) {
		return nil
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		if isStringType(u.Key()) {
			return u.Elem()
		}
	case *types.Struct:
		return s.stepInto(u, name)
	}
	return nil
}

func isStringType(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

func (s *shapes) stepInto(of *types.Struct, name string) types.Type {
	var embedded []types.Type
	for i := range of.NumFields() {
		fieldName, ok := s.fieldName(of, i)
		if !ok {
			continue
		}
		if fieldName == name {
			return of.Field(i).Type()
		}
		if fieldName == "" {
			embedded = append(embedded, of.Field(i).Type())
		}
	}
	for _, outer := range embedded {
		if s.element(outer).Underlying() == of {
			continue // embeds itself
		}
		if t := s.step(outer, name); t != nil {
			return t
		}
	}
	return nil
}

// clip returns the part of a path that exists in a type, and the type at its end. Paths into
// unstructured objects are returned unchanged.
func (s *shapes) clip(root *types.TypeName, path string) (clipped string, at types.Type) {
	at = root.Type()
	if isUnstructured(at) {
		return path, nil
	}
	var kept []string
	for _, name := range names(path) {
		next := s.step(at, name)
		if next == nil {
			break
		}
		kept = append(kept, name)
		at = next
	}
	return pathOf(kept), at
}

// namedOf returns the type name behind pointers, or nil.
func namedOf(t types.Type) *types.TypeName {
	for {
		pointer, ok := t.Underlying().(*types.Pointer)
		if !ok {
			break
		}
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok {
		return nil
	}
	return named.Origin().Obj()
}

func isUnstructured(t types.Type) bool {
	name := namedOf(t)
	return name != nil && name.Name() == "Unstructured" && path(name.Pkg()) == unstructuredPackage
}

const unstructuredPackage = "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// path returns a package's path without the directory of vendored packages.
func path(of *types.Package) string {
	if of == nil {
		return ""
	}
	_, after, ok := strings.Cut(of.Path(), "/vendor/")
	if ok {
		return after
	}
	return of.Path()
}

// IsAPIObject reports whether a type is a struct with Kubernetes object metadata. A type that is
// declared by an object of another package is none: what is read of it is read of that object.
func IsAPIObject(name *types.TypeName) bool {
	of, ok := name.Type().Underlying().(*types.Struct)
	if !ok || declaringPackage(name, of) != name.Pkg() {
		return false
	}
	for i := range of.NumFields() {
		field := of.Field(i)
		if !field.Anonymous() {
			continue
		}
		meta := namedOf(field.Type())
		if meta != nil && meta.Name() == "ObjectMeta" && path(meta.Pkg()) == metaPackage {
			return true
		}
	}
	return isUnstructured(name.Type())
}

// declaringPackage returns the package whose source has a struct's fields. It is not that of the
// name in "type Own corev1.PodSpec".
func declaringPackage(name *types.TypeName, of *types.Struct) *types.Package {
	if of.NumFields() == 0 {
		return name.Pkg()
	}
	return of.Field(0).Pkg()
}

// partPackages have the types of apimachinery that occur in API objects.
var partPackages = []string{
	metaPackage, unstructuredPackage, "k8s.io/apimachinery/pkg/api/resource",
	"k8s.io/apimachinery/pkg/runtime", "k8s.io/apimachinery/pkg/util/intstr",
}

// IsAPIPackage reports whether types of a package may occur in API objects: it has one, or it is one
// of apimachinery.
func IsAPIPackage(pkg *types.Package) bool {
	if slices.Contains(partPackages, path(pkg)) {
		return true
	}
	scope := pkg.Scope()
	return slices.ContainsFunc(scope.Names(), func(name string) bool {
		object, ok := scope.Lookup(name).(*types.TypeName)
		return ok && IsAPIObject(object)
	})
}

// MayBePart reports whether a type may occur in API objects: it is one of an API package, and its
// fields have names in JSON if it is a struct.
func MayBePart(name *types.TypeName) bool {
	if name.Pkg() == nil {
		return false
	}
	of, ok := name.Type().Underlying().(*types.Struct)
	if !ok || of.NumFields() == 0 {
		return IsAPIPackage(name.Pkg())
	}
	if !IsAPIPackage(declaringPackage(name, of)) {
		return false
	}
	for i := range of.NumFields() {
		if reflect.StructTag(of.Tag(i)).Get("json") != "" {
			return true
		}
	}
	return isUnstructured(name.Type())
}

const metaPackage = "k8s.io/apimachinery/pkg/apis/meta/v1"
