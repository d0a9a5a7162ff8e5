package flow

import (
	"go/types"
	"slices"
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
