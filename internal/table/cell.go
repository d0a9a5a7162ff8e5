package table

import (
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"
)

// This is the only file of the module that uses unsafe. Cells are read while they are written,
// so they are made of words that are loaded and stored atomically. An interface value and a
// string are two words each; here they are split into a pointer and a small number.
//
// It is sound because a pointer is only put together with the number that was stored with it
// (readers check that, see Table.Get), numbers of types never change their meaning, and each
// pointer is kept as a pointer, so that the garbage collector sees it.

// word is a pointer: the data word of an interface value, or to the first byte of a string.
type word = unsafe.Pointer

// cell is an object, its key and its origin, in 40 bytes. Its words are plain so that a chunk can be
// copied; those before the origin are accessed atomically where they may be written meanwhile.
type cell struct {
	value word
	name  word // the part of the key after its space
	// kind is the number of the object's type, and the length of the name from the ninth bit on. It is
	// 0 if the cell is free.
	kind uint32
	// space is the number of the key's first part. In a free cell it is that of the next free one.
	space uint32
	// origin is for the writer alone.
	origin Origin
}

// load reads a cell that may be written meanwhile. Its pointers may be followed only after
// Table.changes has been found unchanged.
func (c *cell) load() cell {
	return cell{
		value: atomic.LoadPointer(&c.value), name: atomic.LoadPointer(&c.name),
		kind: atomic.LoadUint32(&c.kind), space: atomic.LoadUint32(&c.space),
	}
}

// store writes the words that differ: each atomic store takes as long as a lock.
func (c *cell) store(to cell) {
	atomic.StorePointer(&c.value, to.value)
	if c.name != to.name {
		atomic.StorePointer(&c.name, to.name)
	}
	if c.kind != to.kind {
		atomic.StoreUint32(&c.kind, to.kind)
	}
	if c.space != to.space {
		atomic.StoreUint32(&c.space, to.space)
	}
	c.origin = to.origin
}

// longName is the length of a name that is kept in a box. Names in Kubernetes are shorter.
const longName = 1<<16 - 1

// text is the name.
func (c *cell) text() string {
	if c.kind>>8 == longName {
		return *(*string)(c.name)
	}
	return unsafe.String((*byte)(c.name), c.kind>>8)
}

// iface is how Go represents an any; sync/atomic.Value relies on the same.
type iface struct{ typ, data word }

func split(obj any) iface { return *(*iface)(unsafe.Pointer(&obj)) }

// HasWord is false for nil and for values whose data word is nil: nil pointers, maps, functions
// and channels.
func HasWord(obj any) bool { return split(obj).data != nil }

// Same reports whether two values are one object, without calling it: the same pointer or map,
// or the same copy of a value. It is false for nil.
func Same(a, b any) bool { return a != nil && split(a) == split(b) }

const (
	// boxed is the number of a value whose word points to an interface: its own type has no
	// number, or it has no word.
	boxed = 1
	// maxTypes is the largest number of a type. The first is 2.
	maxTypes = 1<<8 - 1
)

// types numbers the types of a table's objects. It only grows; readers hold older versions,
// which have all the types that they meet.
type types struct {
	// all are the types by number. That of boxed is nil until a value is boxed.
	all atomic.Pointer[[]word]
	ids map[word]uint32
}

func newTypes() *types {
	t := &types{ids: map[word]uint32{}}
	t.all.Store(&[]word{nil, nil})
	return t
}

// cell takes an object and a name apart. The bytes of the name stay where the caller has them. Only the
// writer calls it.
func (t *types) cell(obj any, name string) cell {
	i, all := split(obj), *t.all.Load()
	id, known := t.ids[i.typ]
	switch {
	case i.data == nil, !known && len(all) > maxTypes:
		boxedObject := obj
		id, i.data = boxed, word(&boxedObject)
		if all[boxed] == nil {
			marked := slices.Clone(all)
			marked[boxed] = i.data // it counts that there is one
			t.all.Store(&marked)
		}
	case !known:
		id = uint32(len(all))
		grown := append(all, i.typ)
		t.all.Store(&grown)
		t.ids[i.typ] = id
	}
	c := cell{value: i.data, kind: id}
	switch {
	case len(name) >= longName:
		kept := name
		c.name, c.kind = word(&kept), id|longName<<8
	case name != "": // an empty string may point anywhere
		c.name, c.kind = word(unsafe.StringData(name)), id|uint32(len(name))<<8
	}
	return c
}

// object is the object of a cell that is not free.
func (c *cell) object(all []word) (obj any) {
	id := c.kind & maxTypes
	if id == boxed {
		return *(*any)(c.value)
	}
	*(*iface)(unsafe.Pointer(&obj)) = iface{all[id], c.value}
	return obj
}

// pointers returns the number of the pointer type T among types, or one that no cell has.
func pointers[T any](all []word) uint32 {
	var none T
	if reflect.TypeFor[T]().Kind() == reflect.Pointer {
		if id := slices.Index(all, split(none).typ); id > boxed {
			return uint32(id)
		}
	}
	return maxTypes + 1
}

// as is the pointer of type T that a word is.
func as[T any](data word) T { return *(*T)(unsafe.Pointer(&data)) }
