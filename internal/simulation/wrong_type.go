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

// A list of nothing but objects of another type (B25) is made by the tap: of all its pages,
// or of the initial events of a streaming list.

var errWrongTypes = errors.New("a list has nothing but objects of another type")

// whole is the list that a request is a page of, or itself.
func (r *asked) whole() *asked {
	if r.of != nil {
		return r.of
	}
	return r
}

// wrongedItem is an item as its list is to have it.
func (t *tap) wrongedItem(request *asked, item runtime.Object) runtime.Object {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := request.whole()
	o, err := meta.Accessor(item)
	if !list.wrong || err != nil {
		return item
	}
	list.items++
	return ofOtherType(o)
}

// ofOtherType is an object with the metadata of another, of a type that no mirror expects.
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

// wrongedList is a list as it is to be.
func (t *tap) wrongedList(request *asked, list runtime.Object) runtime.Object {
	things, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok || !request.whole().wrong {
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
	request.whole().items += len(other.Items)
	return other
}

// wrongEnd is called when a list has been answered to its end. One that had objects, all of
// another type, has failed, and must be reported.
func (t *tap) wrongEnd(ctx context.Context, request *asked) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := request.whole()
	if !list.wrong || list.items == 0 {
		return
	}
	list.failed = true
	t.faultLocked(ctx, errWrongTypes)
	t.faults[len(t.faults)-1].wrong = true
}
