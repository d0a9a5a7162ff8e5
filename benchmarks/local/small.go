package local

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Small is an object that is little more than its names, so that what is measured is what
// is done with it: a Deployment's metadata, say. About 0.8 KiB live.
type Small = metav1.PartialObjectMetadata

// tierLabel is the label that objects have.
const tierLabel = "tier"

// NewSmall makes object i as it is at a version. No string or map is shared with another
// object, as none is of what a decoder makes.
func NewSmall(i int, version uint64) *Small {
	object := &Small{}
	fillSmall(object, i, version)
	return object
}

func fillSmall(object *Small, i int, version uint64) {
	name := fmt.Sprintf("small-%06d", i)
	owner := ownerOf(i)
	object.ObjectMeta = metav1.ObjectMeta{
		Name:            name,
		Namespace:       namespaceOf(i),
		UID:             types.UID("0b5c7a52-60a3-4a5e-9d4b-" + fmt.Sprintf("%012d", i)),
		ResourceVersion: strconv.FormatUint(version, 10),
		Labels:          map[string]string{tierLabel: tierOf(i)},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: types.UID(owner)}},
	}
}

// NextSmall is the object in a later state, whose strings and maps are those of the
// earlier: a source of many changes then takes little of the heap. Its generation is the
// number of the change, by which a handler knows it again.
func NextSmall(object *Small, version uint64, change int) *Small {
	next := *object
	next.ResourceVersion = strconv.FormatUint(version, 10)
	next.Generation = int64(change)
	return &next
}

// Smalls makes so many objects, from the first on, each with the version after its number.
func Smalls(objects int) []*Small {
	all := make([]*Small, objects)
	for i := range all {
		all[i] = NewSmall(i, uint64(i+1))
	}
	return all
}
