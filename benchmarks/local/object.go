package local

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Object is little more than its names, so that what is measured is what is done with it: a
// Deployment's metadata, say. About 0.8 KiB live.
type Object = metav1.PartialObjectMetadata

const (
	perNamespace = 1000
	perTier      = 10_000
	perOwner     = 10
)

// NewObject makes object i as it is at a version. No string or map is shared with another
// object, as none is of what a decoder makes.
func NewObject(i int, version uint64) *Object {
	object := &Object{}
	fill(object, i, version)
	return object
}

func fill(object *Object, i int, version uint64) {
	owner := fmt.Sprintf("owner-%d", i/perOwner)
	object.ObjectMeta = metav1.ObjectMeta{
		Name:            nameOf(i),
		Namespace:       namespaceOf(i),
		UID:             types.UID("0b5c7a52-60a3-4a5e-9d4b-" + fmt.Sprintf("%012d", i)),
		ResourceVersion: strconv.FormatUint(version, 10),
		Labels:          map[string]string{"tier": fmt.Sprintf("tier-%d", i/perTier)},
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner, UID: types.UID(owner)},
		},
	}
}

func nameOf(i int) string { return fmt.Sprintf("object-%06d", i) }

func namespaceOf(i int) string { return fmt.Sprintf("namespace-%d", i/perNamespace) }

// Key is where object i is in a store.
func Key(i int) string { return namespaceOf(i) + "/" + nameOf(i) }

// NewLarge makes an object of 1.7 KiB live.
func NewLarge(version uint64) *Object {
	const size = 560
	object := NewObject(0, version)
	object.Annotations = map[string]string{"settings": strings.Repeat("x", size)}
	return object
}

// Next is the object in a later state, whose strings and maps are those of the earlier: a
// source of many changes then takes little of the heap. Its generation is the number of the
// change, by which a handler knows it again.
func Next(object *Object, version uint64, change int) *Object {
	next := *object
	next.ResourceVersion = strconv.FormatUint(version, 10)
	next.Generation = int64(change)
	return &next
}
