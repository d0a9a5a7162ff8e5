package table

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

// This is the only file of the module that uses unsafe. Cells are read while they are written, so they consist of words
// that are loaded and stored atomically. An interface value and a string are two words each. A cell has a pointer and a
// small number for each of them.
//
// This is sound for three reasons. A pointer is combined only with the number that was stored with it: readers check
// that (see Table.Get). The number of a type never changes its meaning. Each pointer is stored as a pointer, so the
// garbage collector sees it.

// word is a pointer: the type or the data of an interface value, or the first byte of a string.
type word = unsafe.Pointer

// iface is Go's representation of an any. sync/atomic.Value relies on it too.
type iface struct{ typ, data word }

func split(obj any) iface { return *(*iface)(unsafe.Pointer(&obj)) }

// IsNil returns true for nil and for values whose data word is nil: nil pointers, maps, functions and channels.
func IsNil(obj any) bool { return split(obj).data == nil }

// Same reports whether two values are the same object, without calling its methods: the same pointer or map, or the
// same copy of a value. It is false for nil.
func Same(a, b any) bool { return a != nil && split(a) == split(b) }

// Identity returns a comparable value that is equal for two values that are the Same, and retains them.
func Identity(obj any) any { return split(obj) }

// cell has an object, its key and its origin, in 40 bytes. The fields before origin are accessed atomically if a reader
// and the writer may use them concurrently. They are not of atomic types, so that a chunk can be copied.
type cell struct {
	value word
	name  word // the name of the key
	// kind is the number of the object's type and, from bit 8 on, the length of the name. It is 0 if the cell is free,
	// and boxed if either is too large: then value is a *box.
	kind uint32
	// namespace is the number of the key's namespace. In a free cell it is the number of the next free cell, plus 1.
	namespace uint32
	// Only the writer uses origin.
	origin Origin
}

const (
	boxed   = 1<<8 - 1
	maxName = 1<<24 - 1
)

type box struct {
	object any
	name   string
}

// types has the types of a table's objects by number, from 1 on. It only grows. Readers may have an older list, which has
// the types of all their cells.
type types struct{ all atomic.Pointer[[]word] }

// cell returns the cell for an object, a name and an origin. It refers to the caller's bytes of the name. Only the writer
// calls it.
func (t *types) cell(obj any, name string, origin Origin) cell {
	i, all := split(obj), *t.all.Load()
	number := slices.Index(all, i.typ)
	if number < 0 && len(all) < boxed {
		number = len(all)
		more := append(all, i.typ)
		t.all.Store(&more)
	}
	if number < 0 || len(name) > maxName {
		return cell{value: word(&box{obj, name}), kind: boxed, origin: origin}
	}
	return cell{
		value: i.data, name: word(unsafe.StringData(name)), kind: uint32(number) | uint32(len(name))<<8, origin: origin,
	}
}

// object returns the object of a cell that is not free.
func (c *cell) object(all []word) (obj any) {
	if c.kind == boxed {
		return (*box)(c.value).object
	}
	*(*iface)(unsafe.Pointer(&obj)) = iface{all[c.kind&boxed], c.value}
	return obj
}

// text returns the name.
func (c *cell) text() string {
	if c.kind == boxed {
		return (*box)(c.value).name
	}
	return unsafe.String((*byte)(c.name), c.kind>>8)
}

// load reads a cell that may be written concurrently. Its pointers may be followed only after Table.changes was found
// unchanged.
func (c *cell) load() cell {
	return cell{
		value: atomic.LoadPointer(&c.value), name: atomic.LoadPointer(&c.name),
		kind: atomic.LoadUint32(&c.kind), namespace: atomic.LoadUint32(&c.namespace),
	}
}

func (c *cell) store(to cell) {
	atomic.StorePointer(&c.value, to.value)
	atomic.StorePointer(&c.name, to.name)
	atomic.StoreUint32(&c.kind, to.kind)
	atomic.StoreUint32(&c.namespace, to.namespace)
	c.origin = to.origin
}
