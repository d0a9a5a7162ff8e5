package table

import (
	"slices"
	"sync/atomic"
	"unsafe"
)

// This is the only file of the module that uses unsafe. Cells are read while they are written, so
// they consist of words that are loaded and stored atomically. An interface value and a string are
// two words each. A cell has a pointer and a small number for each of them.
//
// This is sound for three reasons. A pointer is combined only with the number that was stored with
// it: readers check that (see Table.Get). The number of a type never changes its meaning. Each
// pointer is stored as a pointer, so the garbage collector sees it.

// word is a pointer: the type or the data of an interface value, or the first byte of a string.
type word = unsafe.Pointer

// iface is Go's representation of an any. sync/atomic.Value relies on it too.
type iface struct{ typ, data word }

func split(obj any) iface {
	return *(*iface)(unsafe.Pointer(&obj))
}

// viewText returns bytes as a string that is valid until they change.
func viewText(bytes []byte) string {
	return unsafe.String(unsafe.SliceData(bytes), len(bytes))
}

// IsNil returns true for nil and for values whose data word is nil: nil pointers, maps, functions
// and channels.
func IsNil(obj any) bool {
	return split(obj).data == nil
}

// Same reports whether two values are the same object, without calling its methods: the same
// pointer or map, or the same copy of a value. It is false for nil.
func Same(a, b any) bool {
	return a != nil && split(a) == split(b)
}

// Identity returns a comparable value that is equal for two values that are the Same, and retains
// them.
func Identity(obj any) any {
	return split(obj)
}

// cell has an object, its key and its origin, in 40 bytes.
type cell struct {
	content content
	// Only the writer uses packed.
	packed packedOrigin
}

// content is an object and its key. In a cell that a reader and the writer may use concurrently,
// its words are accessed atomically. They are not of atomic types, so that a chunk can be copied.
type content struct {
	value word
	name  word // the name of the key
	// kind is the number of the object's type and, from bit 8 on, the length of the name. It is 0
	// if the cell is free, and boxed if either is too large, or if the origin has a long version:
	// then value is a *box.
	kind uint32
	// namespace is the number of the key's namespace. In a free cell it is the number of the next
	// free cell, plus 1.
	namespace uint32
}

const (
	boxed   = 1<<8 - 1
	maxName = 1<<24 - 1
)

type box struct {
	object any
	name   string
	long   longText
}

// types has the types of a table's objects by number, from 1 on. It only grows. Readers may have an
// older list, which has the types of all their cells.
type types struct{ all atomic.Pointer[[]word] }

// number returns the number of a type, or boxed if there are too many. Only the writer calls it.
func (t *types) number(typ word) uint32 {
	all := *t.all.Load()
	number := slices.Index(all, typ)
	if number >= 0 {
		return uint32(number)
	}
	if len(all) == boxed {
		return boxed
	}
	more := append(all, typ)
	t.all.Store(&more)
	return uint32(len(all))
}

// content returns an object and a key as they are in a cell. It refers to the caller's bytes of the
// name. long is that of the origin. Only the writer calls it.
func (t *types) content(obj any, name string, namespace uint32, long longText) content {
	object := split(obj)
	number := t.number(object.typ)
	if number == boxed || len(name) > maxName || long != (longText{}) {
		whole := &box{object: obj, name: name, long: long}
		return content{value: word(whole), kind: boxed, namespace: namespace}
	}
	return content{
		value:     object.data,
		name:      word(unsafe.StringData(name)),
		kind:      number | uint32(len(name))<<8,
		namespace: namespace,
	}
}

// origin returns the origin, unless the cell is free.
func (c *cell) origin() Origin {
	if c.packed.uid&longVersion == 0 {
		return Origin{packedOrigin: c.packed}
	}
	whole := (*box)(c.content.value)
	return Origin{packedOrigin: c.packed, long: whole.long}
}

func (c content) isFree() bool {
	return c.kind == 0
}

// object returns the object, unless the cell is free.
func (c content) object(all []word) (obj any) {
	if c.kind == boxed {
		return (*box)(c.value).object
	}
	*(*iface)(unsafe.Pointer(&obj)) = iface{all[c.kind&boxed], c.value}
	return obj
}

// text returns the name.
func (c content) text() string {
	if c.kind == boxed {
		return (*box)(c.value).name
	}
	return unsafe.String((*byte)(c.name), c.kind>>8)
}

// load reads the content of a cell that may be written concurrently. Its pointers may be followed
// only after Table.changes was found unchanged.
func (c *cell) load() content {
	return content{
		value:     atomic.LoadPointer(&c.content.value),
		name:      atomic.LoadPointer(&c.content.name),
		kind:      atomic.LoadUint32(&c.content.kind),
		namespace: atomic.LoadUint32(&c.content.namespace),
	}
}

// store changes a cell that may be read concurrently. It stores only words that differ: an atomic
// store takes as long as a lock.
func (c *cell) store(to content, origin Origin) {
	if c.content.value != to.value {
		atomic.StorePointer(&c.content.value, to.value)
	}
	if c.content.name != to.name {
		atomic.StorePointer(&c.content.name, to.name)
	}
	if c.content.kind != to.kind {
		atomic.StoreUint32(&c.content.kind, to.kind)
	}
	if c.content.namespace != to.namespace {
		atomic.StoreUint32(&c.content.namespace, to.namespace)
	}
	c.packed = origin.packedOrigin
}

// Address returns where the data of an interface value is, without retaining it.
func Address(obj any) uintptr {
	data := split(obj).data
	return uintptr(data)
}

// TextAddress returns where the bytes of a string are, without retaining them.
func TextAddress(text string) uintptr {
	first := unsafe.StringData(text)
	return uintptr(unsafe.Pointer(first))
}
