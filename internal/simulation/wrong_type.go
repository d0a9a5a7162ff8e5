package simulation

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The tap makes lists of only wrong types (B25), in all pages or in the initial events of a streaming
// list.

var errWrongTypes = errors.New("a list has nothing but objects of another type")

// wholeList is the list that a request is a page of, or itself.
func (r *request) wholeList() *request {
	if r.firstPage != nil {
		return r.firstPage
	}
	return r
}

// itemOfWrongType is an item as its list is to have it.
func (t *tap) itemOfWrongType(request *request, item runtime.Object) runtime.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := request.wholeList()
	o, err := meta.Accessor(item)
	if !list.wrong || err != nil {
		return item
	}
	list.items++
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
func (t *tap) listOfWrongType(request *request, list runtime.Object) runtime.Object {
	things, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok || !request.wholeList().wrong {
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
	request.wholeList().items += len(other.Items)
	return other
}

// endListOfWrongType is called when a list has been answered to its end. One that had objects, all of
// another type, has failed, and must be reported.
func (t *tap) endListOfWrongType(ctx context.Context, request *request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := request.wholeList()
	if !list.wrong || list.items == 0 {
		return
	}
	list.failed = true
	t.faultLocked(ctx, errWrongTypes)
	t.faults[len(t.faults)-1].wrong = true
}
