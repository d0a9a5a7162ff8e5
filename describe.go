package cache

import (
	"fmt"
	"reflect"

	"github.com/watchmirror/cache/internal/table"
)

// describe names an object for a message: its type and, where it can be read,
// its namespace and name. Never its content, which may be large or secret.
func describe(obj any) string {
	if obj == nil {
		return "nil"
	}
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return fmt.Sprintf("tombstone %q", tombstone.Key)
	}
	if name, ok := obj.(ObjectName); ok {
		return fmt.Sprintf("%q", name.String())
	}
	if isNilPointer(obj) {
		return fmt.Sprintf("nil %T", obj)
	}
	if name, err := ObjectToName(obj); err == nil && name.String() != "" {
		return fmt.Sprintf("%T %q", obj, name)
	}
	return fmt.Sprintf("%T", obj)
}

// isNilPointer is true for nil and for a nil pointer in an interface, on which
// the metadata accessors would panic.
//
// Each event asks several times, nearly always of what is there.
func isNilPointer(obj any) bool { return !table.HasWord(obj) && isNilWord(obj) }

// isNilWord is isNilPointer for a value without a data word. Nil maps have none either.
func isNilWord(obj any) bool { return obj == nil || reflect.TypeOf(obj).Kind() == reflect.Pointer }
