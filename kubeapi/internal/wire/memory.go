package wire

import (
	"reflect"
	"sync"
)

// Memory charged for values before they are decoded, in bytes: the largest allocation measured in
// decoders, rounded up.
const (
	// PerValue is the charge for a value of any kind, including its share of a map or slice.
	PerValue = 512
	// Growing is the charge for an element of a slice that grows by append, as a multiple of its
	// size. Append grows by a quarter, and may just have grown.
	Growing = 7
)

// Sizes are the sizes in bytes of the largest Go values that a decoder may allocate.
type Sizes struct {
	// Element is for elements of slices, Single for values behind pointers and in maps.
	Element, Single int
}

var sizesByType sync.Map // reflect.Type: Sizes

// SizesOf returns the sizes for a type. It caches them.
func SizesOf(t reflect.Type) Sizes {
	if known, ok := sizesByType.Load(t); ok {
		return known.(Sizes)
	}
	var s Sizes
	s.add(t, map[reflect.Type]bool{})
	sizesByType.Store(t, s)
	return s
}

func (s *Sizes) add(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			s.add(t.Field(i).Type, seen)
		}
	case reflect.Slice, reflect.Array:
		size := int(t.Elem().Size())
		if t.Elem().Kind() == reflect.Pointer {
			size += int(t.Elem().Elem().Size())/Growing + 1 // the pointed-to value does not grow
		}
		s.Element = max(s.Element, size)
		s.add(t.Elem(), seen)
	case reflect.Map, reflect.Pointer:
		s.Single = max(s.Single, int(t.Elem().Size()))
		s.add(t.Elem(), seen)
	}
}

// PerElement is the charge for an element of an array, in addition to PerValue.
func (s Sizes) PerElement() int { return Growing * s.Element }

// PerObject is the charge for an object, in addition to PerValue. It may be copied once.
func (s Sizes) PerObject() int { return 2 * s.Single }

// CheckMemory returns a LimitError if the charge, plus twice the object's bytes for its strings,
// exceeds the limit.
func (l Limits) CheckMemory(charged int64, bytes int) error {
	if l.Memory > 0 && charged > int64(l.Memory)-2*int64(bytes) {
		return &LimitError{What: LimitMemory, Limit: l.Memory}
	}
	return nil
}

// Spares reports whether an object of so many bytes is within the limit whatever its content, if
// each byte is charged with at most perByte.
func (l Limits) Spares(bytes, perByte int) bool {
	return l.Memory <= 0 || bytes <= l.Memory/(perByte+2)
}
