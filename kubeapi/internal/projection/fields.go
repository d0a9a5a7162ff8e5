package projection

import (
	"errors"
	"reflect"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// alwaysKept has the metadata that is kept: all but annotations and managedFields. The cache,
// indexes and selectors need it, and writing back an object with a partial list would lose the
// rest.
var alwaysKept = [][]string{
	{"metadata", "name"}, {"metadata", "generateName"}, {"metadata", "namespace"},
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
	{"metadata", "creationTimestamp"},
	{"metadata", "deletionTimestamp"}, {"metadata", "deletionGracePeriodSeconds"},
	{"metadata", "labels"}, {"metadata", "ownerReferences"}, {"metadata", "finalizers"},
}

var errNoMetadata = errors.New(
	"fields of this type cannot be selected: " +
		"its struct tags have no metadata, or it decodes its JSON itself")

// New returns the fields for paths, which it checks against the struct type. With a nil type, for
// unstructured objects, only the syntax is checked. The result also has the fields that every
// object must keep.
//
// Numbers is nil if the type lacks the number of any field.
func New(paths []string, structType reflect.Type) (*wire.Fields, error) {
	fields := &wire.Fields{Names: &wire.Names{}}
	fields.Names.Below("apiVersion").Whole = true
	fields.Names.Below("kind").Whole = true
	for _, names := range alwaysKept {
		addNames(fields.Names, names)
	}
	b := builder{numbers: &wire.Numbers{}}
	if structType != nil {
		if isLeaf(structType) || b.add(structType, alwaysKept[0]) != nil {
			return nil, errNoMetadata
		}
		for _, names := range alwaysKept[1:] {
			_ = b.add(structType, names) // a type may lack some
		}
	}
	for _, path := range paths {
		names, err := parsePath(path)
		if err != nil {
			return nil, err
		}
		addNames(fields.Names, names)
		// In protobuf, apiVersion and kind are outside of the object and always kept.
		inEnvelope := len(names) == 1 && (names[0] == "apiVersion" || names[0] == "kind")
		if structType == nil || inEnvelope {
			continue
		}
		if err := b.add(structType, names); err != nil {
			return nil, pathError(path, err)
		}
	}
	if structType != nil && !b.missingNumber {
		fields.Numbers = b.numbers
	}
	return fields, nil
}

func addNames(into *wire.Names, names []string) {
	for _, name := range names {
		into = into.Below(name)
	}
	into.Whole = true
}
