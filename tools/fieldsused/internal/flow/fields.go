package flow

import (
	"errors"
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// alwaysKept are the paths that kubeapi keeps whichever fields are named.
var alwaysKept = []string{
	"apiVersion", "kind",
	"metadata.name", "metadata.generateName", "metadata.namespace",
	"metadata.uid", "metadata.resourceVersion", "metadata.generation",
	"metadata.creationTimestamp", "metadata.deletionTimestamp",
	"metadata.deletionGracePeriodSeconds", "metadata.labels", "metadata.ownerReferences",
	"metadata.finalizers",
}

// IsAlwaysKept reports whether kubeapi keeps a path whichever fields are named.
func IsAlwaysKept(path string) bool {
	return slices.ContainsFunc(alwaysKept, func(kept string) bool { return covers(kept, path) })
}

// IsKept reports whether a use of a path finds what it needs if only some fields are kept.
func IsKept(path string, kind Kind, fields []string) bool {
	if IsAlwaysKept(path) {
		return true
	}
	return slices.ContainsFunc(fields, func(field string) bool {
		return covers(field, path) || kind == Presence && covers(path, field)
	})
}

// errForm is the error for a path that no type can have.
var errForm = errors.New("the form is spec.nodeName or metadata.annotations[example.com/owner]")

// CheckPath returns an error if kubeapi refuses a path as one of the fields of objects. A nil object
// stands for unstructured objects, of which only the form of paths is known.
func CheckPath(object *types.TypeName, path string) error {
	if !isWellFormed(path) {
		return errForm
	}
	if object == nil || path == "apiVersion" || path == "kind" {
		return nil
	}
	shapes := newShapes()
	at := object.Type()
	for _, name := range names(path) {
		next := shapes.step(at, name)
		if next == nil {
			return shapes.noField(at, name)
		}
		at = next
	}
	return nil
}

func (s *shapes) noField(of types.Type, name string) error {
	of = s.element(of)
	byName := func(pkg *types.Package) string { return pkg.Name() }
	text := types.TypeString(of, byName)
	structType, isStruct := of.Underlying().(*types.Struct)
	if !isStruct || s.isLeaf(of) {
		return fmt.Errorf("%s has no fields that can be selected", text)
	}
	for i := range structType.NumFields() {
		similar, decoded := s.fieldName(structType, i)
		if decoded && strings.EqualFold(similar, name) {
			return fmt.Errorf("%s has no field %q, but %q", text, name, similar)
		}
	}
	return fmt.Errorf("%s has no field %q", text, name)
}

// Fields returns the list for kubeapi.Options.Fields that keeps what the uses of an object need. It
// is nil if they need everything.
func Fields(object *types.TypeName, uses []Use) []string {
	var fields []string
	for _, u := range uses {
		if u.Kind != Read && u.Kind != Escaped || IsAlwaysKept(u.Path) {
			continue
		}
		if u.Path == "" {
			return nil
		}
		fields = append(fields, u.Path)
	}
	shapes := newShapes()
	for _, u := range uses {
		if u.Kind == Presence && !IsKept(u.Path, Presence, fields) {
			fields = append(fields, shapes.smallestBelow(object, u.Path))
		}
	}
	fields = withoutCovered(fields)
	if len(fields) == 0 {
		return []string{"metadata.name"} // an empty list would keep everything
	}
	return fields
}

// withoutCovered returns a sorted list without the paths that others include.
func withoutCovered(fields []string) []string {
	slices.Sort(fields)
	fields = slices.Compact(fields)
	isCovered := func(field string) bool {
		return slices.ContainsFunc(fields, func(other string) bool {
			return other != field && covers(other, field)
		})
	}
	return slices.DeleteFunc(slices.Clone(fields), isCovered)
}

// smallestBelow returns a path that keeps whether a value exists and how many elements it has: that
// of one scalar field below it. kubeapi keeps objects and elements of lists that become empty.
func (s *shapes) smallestBelow(object *types.TypeName, path string) string {
	clipped, at := s.clip(object, path)
	if at == nil || s.isScalar(at) {
		return path
	}
	structType, ok := s.element(at).Underlying().(*types.Struct)
	if !ok {
		return path
	}
	for i := range structType.NumFields() {
		name, decoded := s.fieldName(structType, i)
		if decoded && name != "" && s.isScalar(structType.Field(i).Type()) {
			return join(clipped, name)
		}
	}
	return path
}
