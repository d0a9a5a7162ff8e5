package world

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
)

// The tap makes lists of only wrong types (B25), in all pages or in the initial events of a
// streaming list.

var (
	errWrongTypes = errors.New("a list has nothing but objects of another type")
	errNoVersion  = errors.New("a list has no version")
)

// itemOfWrongType is an item as its list is to have it.
func (t *tap) itemOfWrongType(request *Request, item runtime.Object) runtime.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := request.wholeList()
	o, err := meta.Accessor(item)
	if !list.Wrong || err != nil {
		return item
	}
	list.Items++
	return ofOtherType(o)
}

// ofOtherType returns an object of an unexpected type with the metadata of another one.
func ofOtherType(o metav1.Object) *unstructured.Unstructured {
	other := &unstructured.Unstructured{}
	other.SetGroupVersionKind(objectKind)
	other.SetNamespace(o.GetNamespace())
	other.SetName(o.GetName())
	other.SetUID(o.GetUID())
	other.SetResourceVersion(o.GetResourceVersion())
	other.SetAnnotations(maps.Clone(o.GetAnnotations()))
	return other
}

// listOfWrongType is a list as it is to be.
func (t *tap) listOfWrongType(request *Request, list runtime.Object) runtime.Object {
	things, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok || !request.wholeList().Wrong {
		return list
	}
	other := &unstructured.UnstructuredList{}
	other.SetResourceVersion(things.ResourceVersion)
	other.SetContinue(things.Continue)
	other.SetRemainingItemCount(things.RemainingItemCount)
	for i := range things.Items {
		other.Items = append(other.Items, *ofOtherType(&things.Items[i]))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	request.wholeList().Items += len(other.Items)
	return other
}

// endBadList is called when a list has been answered to its end. One that had objects, all of
// another type (B25), or no version (B32), has failed, and must be reported.
func (t *tap) endBadList(ctx context.Context, request *Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := request.wholeList()
	if list.versionless {
		t.failListLocked(ctx, list, errNoVersion, cache.CauseInvalidResponse)
	}
	if list.Wrong && list.Items > 0 {
		t.failListLocked(ctx, list, errWrongTypes, "wrong-type")
	}
}

// failListLocked records that a list that was answered has failed, and must be reported with a
// cause.
func (t *tap) failListLocked(ctx context.Context, list *Request, err error, cause cache.Cause) {
	list.Failed = true
	t.faultLocked(ctx, err)
	t.faults[len(t.faults)-1].Cause = cause
}
