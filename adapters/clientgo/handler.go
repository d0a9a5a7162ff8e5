package clientgo

import (
	"fmt"
	"reflect"
	"runtime"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// ResourceEventHandler makes a handler that was written for client-go fit for an informer
// of this library. The compiler lets it be added as it is, for the methods are the same,
// but it would not know the tombstones: OnDelete is called for an object whose deletion was
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
	handler toolscache.ResourceEventHandler
}

// OnAdd implements cache.ResourceEventHandler.
func (h eventHandler) OnAdd(obj any, isInInitialList bool) { h.handler.OnAdd(obj, isInInitialList) }

// OnUpdate implements cache.ResourceEventHandler.
func (h eventHandler) OnUpdate(oldObj, newObj any) { h.handler.OnUpdate(oldObj, newObj) }

// OnDelete implements cache.ResourceEventHandler.
func (h eventHandler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = toolscache.DeletedFinalStateUnknown(tombstone)
	}
	h.handler.OnDelete(obj)
}

// handlerName is what an informer of this library calls a handler that is not wrapped: its type,
// or the name of the first function of the forms that are made of functions. A filter has the
// name of its Handler.
func handlerName(handler toolscache.ResourceEventHandler) string {
	if filter, ok := handler.(toolscache.FilteringResourceEventHandler); ok && filter.Handler != nil {
		handler = filter.Handler
	}
	switch h := handler.(type) {
	case toolscache.ResourceEventHandlerFuncs:
		return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *toolscache.ResourceEventHandlerFuncs:
		if h != nil {
			return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
		}
	case toolscache.ResourceEventHandlerDetailedFuncs:
		return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *toolscache.ResourceEventHandlerDetailedFuncs:
		if h != nil {
			return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
		}
	}
	return fmt.Sprintf("%T", handler)
}

// functionName is the name of the first of a handler's functions that is not nil, or the type of
// a handler that has none.
func functionName(handler any, functions ...any) string {
	for _, function := range functions {
		if value := reflect.ValueOf(function); !value.IsNil() {
			return runtime.FuncForPC(value.Pointer()).Name()
		}
	}
	return fmt.Sprintf("%T", handler)
}
