package cache

import (
	"fmt"
	"reflect"
	"runtime"
)

// handlerName is the name of a handler that was given none: its type, or of the forms that are
// made of functions the name of the first function ("main.run.func1"). A filter has the name of
// its Handler. Nothing but these very types is looked into: a program's own may be anything.
func handlerName(handler ResourceEventHandler) string {
	if filter, ok := handler.(FilteringResourceEventHandler); ok && filter.Handler != nil {
		handler = filter.Handler
	}
	switch h := handler.(type) {
	case ResourceEventHandlerFuncs:
		return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *ResourceEventHandlerFuncs:
		if h != nil {
			return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
		}
	case ResourceEventHandlerDetailedFuncs:
		return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *ResourceEventHandlerDetailedFuncs:
		if h != nil {
			return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
		}
	case interface{ typedName() string }:
		return h.typedName()
	}
	return fmt.Sprintf("%T", handler)
}

// typedName is handlerName for a typed handler.
func (h typedHandler[T]) typedName() string {
	handler := h.handler
	if filter, ok := handler.(TypedFilteringResourceEventHandler[T]); ok && filter.Handler != nil {
		handler = filter.Handler
	}
	switch h := handler.(type) {
	case TypedResourceEventHandlerFuncs[T]:
		return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *TypedResourceEventHandlerFuncs[T]:
		if h != nil {
			return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
		}
	case TypedResourceEventHandlerDetailedFuncs[T]:
		return functionName(h, h.AddFunc, h.UpdateFunc, h.DeleteFunc)
	case *TypedResourceEventHandlerDetailedFuncs[T]:
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
