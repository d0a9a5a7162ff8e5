package footprint

import (
	"math/bits"
	"reflect"
	"sync"
)

// The rules of Go's allocator, on which the size of an allocation depends. They are checked by
// tests against runtime.MemStats.
const (
	wordSize = bits.UintSize / 8
	// tinySize is the size of a block that several allocations without pointers share if they are
	// smaller than it.
	tinySize = 16
	// headerSize is added to an allocation with pointers that is larger than maxWithoutHeader.
	headerSize       = 8
	maxWithoutHeader = wordSize * bits.UintSize
	// A larger allocation than maxSmall has whole pages.
	maxSmall = 32 << 10
	pageSize = 8 << 10
)

// allocator rounds sizes as Go's allocator does.
type allocator struct {
	// classes has the memory of small allocations, by their words rounded up.
	classes [maxSmall/classUnit + 1]int64
}

// classUnit divides the size of every class.
const classUnit = 8

// sizeClasses is the allocator of the running program, by the capacity of grown slices.
var sizeClasses = sync.OnceValue(func() *allocator {
	a := &allocator{}
	class := 0
	for i := range a.classes {
		size := i * classUnit
		if size > class {
			class = cap(append([]byte(nil), make([]byte, size)...))
		}
		a.classes[i] = int64(class)
	}
	return a
})

// allocated returns the memory of an allocation of a size.
func (a *allocator) allocated(size int64, hasPointers bool) int64 {
	switch {
	case size == 0:
		return 0
	case !hasPointers && size < tinySize:
		return tinySize
	case size > maxSmall-headerSize:
		return roundUp(size, pageSize)
	}
	if hasPointers && size > maxWithoutHeader {
		size += headerSize
	}
	return a.classes[(size+classUnit-1)/classUnit]
}

// hasPointers returns whether values of a type have pointers, which the allocator treats
// differently.
func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if hasPointers(field.Type) {
				return true
			}
		}
		return false
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return false
	}
	return true
}
