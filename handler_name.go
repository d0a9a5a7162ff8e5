package cache

import (
	"fmt"
	"reflect"
	"runtime"
)

// handlerName is what a handler is called that was given no name: its type, or for the
// forms that are made of functions the name of the first one there is, of the program's
// function or of the place where it is written ("main.run.func1").
func handlerName(handler any) string {
	value := reflect.ValueOf(handler)
	for value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return fmt.Sprintf("%T", handler)
	}
	for _, field := range []string{"AddFunc", "UpdateFunc", "DeleteFunc"} {
		function := value.FieldByName(field)
		if function.IsValid() && function.Kind() == reflect.Func && !function.IsNil() {
			return runtime.FuncForPC(function.Pointer()).Name()
		}
	}
	// What filters passes on to another handler.
	if inner := value.FieldByName("Handler"); inner.IsValid() && inner.Kind() == reflect.Interface && inner.CanInterface() && !inner.IsNil() {
		return handlerName(inner.Interface())
	}
	return fmt.Sprintf("%T", handler)
}
