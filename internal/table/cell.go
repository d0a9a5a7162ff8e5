package table

import (
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

// word is a pointer: the type or the data of an interface value, or to the first byte of a string.
type word = unsafe.Pointer

// iface is how Go represents an any; sync/atomic.Value relies on the same.
type iface struct{ typ, data word }

func split(obj any) iface { return *(*iface)(unsafe.Pointer(&obj)) }

// HasWord is false for nil and for values whose data word is nil: nil pointers, maps, functions
// and channels.
func HasWord(obj any) bool { return split(obj).data != nil }

// Same reports whether two values are one object, without calling it: the same pointer or map,
// or the same copy of a value. It is false for nil.
func Same(a, b any) bool { return a != nil && split(a) == split(b) }

// cell is an object, its key and its origin, in 40 bytes. Its words are plain so that a chunk can be
// copied; those before the origin are accessed atomically where they may be written meanwhile.
type cell struct {
	value word
	name  word // the part of the key after its space
	// kind is the number of the object's type, and from the ninth bit on the length of the name. It is 0 if the cell is
	// free, and boxed if either is too large: value is a *box then.
	kind uint32
	// space is the number of the key's first part. In a free cell it is that of the next free one.
	space uint32
	// origin is for the writer alone.
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

// types numbers the types of a table's objects, from 1 on. It only grows; readers hold older versions,
// which have all the types that they meet.
type types struct {
	all atomic.Pointer[[]word]
	ids map[word]uint32
}

func newTypes() *types {
	t := &types{ids: map[word]uint32{}}
	t.all.Store(&[]word{nil})
	return t
}

// cell takes an object and a name apart. The bytes of the name stay where the caller has them. Only the
// writer calls it.
func (t *types) cell(obj any, name string) cell {
	i := split(obj)
	id, known := t.ids[i.typ]
	if all := *t.all.Load(); !known && len(all) < boxed {
		id, known = uint32(len(all)), true
		more := append(all, i.typ)
		t.all.Store(&more)
		t.ids[i.typ] = id
	}
	if !known || len(name) > maxName {
		return cell{value: word(&box{obj, name}), kind: boxed}
	}
	return cell{value: i.data, name: word(unsafe.StringData(name)), kind: id | uint32(len(name))<<8}
}

// object is the object of a cell that is not free.
func (c *cell) object(all []word) (obj any) {
	if c.kind == boxed {
		return (*box)(c.value).object
	}
	*(*iface)(unsafe.Pointer(&obj)) = iface{all[c.kind&boxed], c.value}
	return obj
}

// text is the name.
func (c *cell) text() string {
	if c.kind == boxed {
		return (*box)(c.value).name
	}
	return unsafe.String((*byte)(c.name), c.kind>>8)
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
