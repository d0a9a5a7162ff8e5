package projection

import (
	"errors"
	"reflect"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Of the metadata all but annotations and managedFields is kept: mirrors, indexes and selectors need it, and a list of which a
// part is missing would be written back so.
var always = [][]string{
	{"metadata", "name"}, {"metadata", "generateName"}, {"metadata", "namespace"},
	{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
	{"metadata", "creationTimestamp"}, {"metadata", "deletionTimestamp"}, {"metadata", "deletionGracePeriodSeconds"},
	{"metadata", "labels"}, {"metadata", "ownerReferences"}, {"metadata", "finalizers"},
}

var errNoMetadata = errors.New("has no metadata in JSON by its struct tags, or decodes its JSON itself: of such a type no fields can be named")

// New makes fields of paths, each of which is checked against the struct type; nil stands
// for objects that are of no Go type, whose paths cannot be checked but for their form. The
// fields that every object must keep are among them, whether they are named or not.
//
// There are no numbers in them if the type does not tell the number of each.
func New(paths []string, of reflect.Type) (*wire.Fields, error) {
	fields := &wire.Fields{Names: &wire.Names{}}
	fields.Names.Below("apiVersion").Whole = true
	fields.Names.Below("kind").Whole = true
	for _, names := range always {
		addNames(fields.Names, names)
	}
	b := builder{numbers: &wire.Numbers{}}
	if of != nil {
		if isLeaf(of) || b.add(of, always[0]) != nil {
			return nil, errNoMetadata
		}
		for _, names := range always[1:] {
			_ = b.add(of, names) // a type may lack some
		}
	}
	for _, path := range paths {
		names, err := parse(path)
		if err != nil {
			return nil, err
		}
		addNames(fields.Names, names)
		// What an object is stands beside it in protobuf, and is always kept.
		if of == nil || len(names) == 1 && (names[0] == "apiVersion" || names[0] == "kind") {
			continue
		}
		if err := b.add(of, names); err != nil {
			return nil, wrong(path, err)
		}
	}
	if of != nil && !b.unnumbered {
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
