package clientgo

import (
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// ResourceEventHandler makes a handler that was written for client-go fit for an informer
// of this library. The compiler lets it be added as it is, for the methods are the same,
// but it would not know the tombstones: OnDelete is told of an object whose deletion was
// not seen with the DeletedFinalStateUnknown of the informer's package, and those of the
// two packages are different types. Nil stays nil.
//
// Handlers that are added through SharedIndexInformer need none of this.
func ResourceEventHandler(handler toolscache.ResourceEventHandler) cache.ResourceEventHandler {
	if isNil(handler) {
		return nil // the informer refuses it, as it should
	}
	return eventHandler{handler}
}

// eventHandler has its handler in a field of the name that a filter has it in: an informer
// calls it after the handler inside.
type eventHandler struct {
	Handler toolscache.ResourceEventHandler
}

// OnAdd implements cache.ResourceEventHandler.
func (h eventHandler) OnAdd(obj any, isInInitialList bool) { h.Handler.OnAdd(obj, isInInitialList) }

// OnUpdate implements cache.ResourceEventHandler.
func (h eventHandler) OnUpdate(oldObj, newObj any) { h.Handler.OnUpdate(oldObj, newObj) }

// OnDelete implements cache.ResourceEventHandler.
func (h eventHandler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = toolscache.DeletedFinalStateUnknown(tombstone)
	}
	h.Handler.OnDelete(obj)
}
