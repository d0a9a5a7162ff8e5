package clientgo

import (
	"fmt"
	"reflect"
	goruntime "runtime"

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

type eventHandler struct {
	toolscache.ResourceEventHandler
}

// OnDelete implements cache.ResourceEventHandler.
func (h eventHandler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = toolscache.DeletedFinalStateUnknown(tombstone)
	}
	h.ResourceEventHandler.OnDelete(obj)
}

// nameOf is what a handler is called in the status: its type, and where that is one of
// client-go's that any function fits in, the function. Ours would see eventHandler.
func nameOf(handler toolscache.ResourceEventHandler) string {
	name := fmt.Sprintf("%T", handler)
	var functions []any
	switch h := handler.(type) {
	case toolscache.ResourceEventHandlerFuncs:
		functions = []any{h.AddFunc, h.UpdateFunc, h.DeleteFunc}
	case toolscache.ResourceEventHandlerDetailedFuncs:
		functions = []any{h.AddFunc, h.UpdateFunc, h.DeleteFunc}
	case toolscache.FilteringResourceEventHandler:
		if !isNil(h.Handler) {
			return name + " of " + nameOf(h.Handler)
		}
	}
	for _, function := range functions {
		if value := reflect.ValueOf(function); !value.IsNil() {
			return name + " with " + goruntime.FuncForPC(value.Pointer()).Name()
		}
	}
	return name
}
