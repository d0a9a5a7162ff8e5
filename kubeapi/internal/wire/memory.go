package wire

import (
	"reflect"
	"sync"
)

// The charges for values before they are decoded: the most that decoders were seen to use,
// rounded up, as memory in all, whether or not it is collected on the way.
const (
	// PerValue is for a value of any kind, with its share of the map or slice it is in.
	PerValue = 512
	// Growing is how many times its size an element of a slice costs that grows by append:
	// by a quarter each time, of which the last may just have begun.
	Growing = 7
)

// Sizes are those of the largest Go values that a decoder makes room for meanwhile, in bytes.
type Sizes struct {
	// Element is an element of a slice, Single what a pointer leads to or a map has.
	Element, Single int
}

var sizes sync.Map // reflect.Type: Sizes

// SizesOf looks through a type, once for each that is asked for.
func SizesOf(t reflect.Type) Sizes {
	if known, ok := sizes.Load(t); ok {
		return known.(Sizes)
	}
	var s Sizes
	s.add(t, map[reflect.Type]bool{})
	sizes.Store(t, s)
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
			size += int(t.Elem().Elem().Size())/Growing + 1 // which does not grow
		}
		s.Element = max(s.Element, size)
		s.add(t.Elem(), seen)
	case reflect.Map, reflect.Pointer:
		s.Single = max(s.Single, int(t.Elem().Size()))
		s.add(t.Elem(), seen)
	}
}

// PerElement is the charge for an element of an array, beside PerValue.
func (s Sizes) PerElement() int { return Growing * s.Element }

// PerObject is the charge for an object, beside PerValue: where room is made for it alone,
// it may be copied once.
func (s Sizes) PerObject() int { return 2 * s.Single }

// CheckMemory compares what was charged with the limit. Strings are charged for by the bytes
// that the object came in.
func (l Limits) CheckMemory(charged int64, bytes int) error {
	if l.Memory > 0 && charged > int64(l.Memory)-2*int64(bytes) {
		return &LimitError{What: LimitMemory, Limit: l.Memory}
	}
	return nil
}

// Spares says of an object of so many bytes that it is within the limit whatever is in it, if
// a byte of it is charged for with no more than this.
func (l Limits) Spares(bytes, perByte int) bool {
	return l.Memory <= 0 || bytes <= l.Memory/(perByte+2)
}
