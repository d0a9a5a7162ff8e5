package clientgo

import (
	"fmt"
	"reflect"
	"runtime"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// ResourceEventHandler adapts a handler written for client-go to an informer of this library. The
// methods are the same, so an unadapted handler compiles, but it would not recognize tombstones:
// OnDelete receives the DeletedFinalStateUnknown of the informer's package, and those of the two
// packages are different types. For a nil handler it returns nil.
//
// Handlers that are added through SharedIndexInformer do not need it.
func ResourceEventHandler(handler toolscache.ResourceEventHandler) cache.ResourceEventHandler {
	if isNil(handler) {
		return nil // AddEventHandler refuses nil
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

// handlerName returns the name that an informer of this library would give to the unwrapped
// handler: its type, or the name of the first function of a handler made of functions. A filter has
// the name of its Handler.
func handlerName(handler toolscache.ResourceEventHandler) string {
	filter, isFilter := handler.(toolscache.FilteringResourceEventHandler)
	if isFilter && filter.Handler != nil {
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

// functionName returns the name of the first function that is not nil, or the type of a handler
// without functions.
func functionName(handler any, functions ...any) string {
	for _, function := range functions {
		if value := reflect.ValueOf(function); !value.IsNil() {
			return runtime.FuncForPC(value.Pointer()).Name()
		}
	}
	return fmt.Sprintf("%T", handler)
}
