package local

import (
	"errors"
	"fmt"
)

// Index is an index of small objects.
type Index struct {
	Name string
	// Of is the index function.
	Of func(object *Small) ([]string, error)
	// Value is what object i has.
	Value func(i int) string
	// Each is how many objects share a value.
	Each int
}

// Indexes are those of the measurements, in the order in which they are added: one is that
// by namespace alone.
var Indexes = []Index{
	{"namespace", ByNamespace, namespaceOf, perNamespace},
	{"tier", ByTier, tierOf, perTier},
	{"owner", ByOwner, ownerOf, perOwner},
}

const (
	perTier  = 10_000
	perOwner = 10
)

func namespaceOf(i int) string { return fmt.Sprintf("namespace-%d", i/perNamespace) }

func tierOf(i int) string { return fmt.Sprintf("tier-%d", i/perTier) }

func ownerOf(i int) string { return fmt.Sprintf("owner-%d", i/perOwner) }

var errNoOwner = errors.New("no owner")

// ByNamespace, ByTier and ByOwner make one allocation each, the slice.
func ByNamespace(object *Small) ([]string, error) { return []string{object.Namespace}, nil }

// ByTier is the value of a label.
func ByTier(object *Small) ([]string, error) { return []string{object.Labels[tierLabel]}, nil }

// ByOwner is the name of the first owner.
func ByOwner(object *Small) ([]string, error) {
	if len(object.OwnerReferences) == 0 {
		return nil, errNoOwner
	}
	return []string{object.OwnerReferences[0].Name}, nil
}

// Untyped is the index function as it is written for untyped stores.
func (i Index) Untyped(obj any) ([]string, error) {
	object, ok := obj.(*Small)
	if !ok {
		return nil, fmt.Errorf("%T has no %s", obj, i.Name)
	}
	return i.Of(object)
}
