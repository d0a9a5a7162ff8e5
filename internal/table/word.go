package table

import (
	"reflect"
	"sync/atomic"
	"unsafe"
)

// This is the only file of the module that uses unsafe. Cells are read while they are written,
// so they are made of words that are loaded and stored atomically. An interface value and a
// string are two words each; here they are taken apart into a pointer and a small number.
//
// It is sound because a pointer is only put together with the number that was stored with it
// (readers check that, see Table.Get), numbers of types never change their meaning, and each
// pointer is kept as a pointer, so that the garbage collector sees it.

// word is a pointer: the data word of an interface value, or to the first byte of a string.
type word struct{ p unsafe.Pointer }

func (w *word) load() word    { return word{atomic.LoadPointer(&w.p)} }
func (w *word) store(to word) { atomic.StorePointer(&w.p, to.p) }
func (w word) isNil() bool    { return w.p == nil }

// iface is how Go represents an any; sync/atomic.Value relies on the same.
type iface struct{ typ, data word }

func split(obj any) iface { return *(*iface)(unsafe.Pointer(&obj)) }

func join(typ, data word) (obj any) {
	*(*iface)(unsafe.Pointer(&obj)) = iface{typ, data}
	return obj
}

// HasWord is false for nil and for values whose data word is nil: nil pointers, maps, functions
// and channels.
func HasWord(obj any) bool { return !split(obj).data.isNil() }

// Same reports whether two values are one object, without calling it: the same pointer or map,
// or the same copy of a value. It is false for nil.
func Same(a, b any) bool { return a != nil && split(a) == split(b) }

// typeID is the number of a type in a table.
type typeID uint8

const (
	// noType is the type of a free cell.
	noType typeID = iota
	// boxed is the type of a value whose word points to an interface: its own type has no
	// number, or it has no word.
	boxed
	firstType

	maxTypes = 1<<8 - 1
)

// types numbers the types of a table's objects. It only grows; readers hold older versions,
// which have all the types that they meet.
type types struct {
	all   atomic.Pointer[[]word]
	ids   map[word]typeID
	boxes atomic.Bool // whether a value has ever been boxed
}

func newTypes() *types {
	t := &types{ids: map[word]typeID{}}
	all := make([]word, firstType)
	t.all.Store(&all)
	return t
}

// store takes an object apart. Only the writer calls it.
func (t *types) store(obj any) (typeID, word) {
	i := split(obj)
	id, known := t.ids[i.typ]
	all := *t.all.Load()
	switch {
	case i.data.isNil(), !known && len(all) >= maxTypes:
		t.boxes.Store(true)
		return boxed, box(obj)
	case !known:
		id = typeID(len(all))
		grown := append(all, i.typ)
		t.all.Store(&grown)
		t.ids[i.typ] = id
	}
	return id, i.data
}

// load is the inverse of store.
func (t *types) load(id typeID, data word) any { return load(*t.all.Load(), id, data) }

func load(all []word, id typeID, data word) any {
	if id == boxed {
		return *unbox[any](data)
	}
	return join(all[id], data)
}

// box moves a value to the heap; unbox returns the pointer to it.
func box[T any](value T) word   { return word{unsafe.Pointer(&value)} }
func unbox[T any](data word) *T { return (*T)(data.p) }

// pointerType is the type word of T, nil if T is not a pointer type.
func pointerType[T any]() word {
	if reflect.TypeFor[T]().Kind() != reflect.Pointer {
		return word{}
	}
	var none T
	return split(none).typ
}

// as is the pointer of type T that a word is.
func as[T any](data word) T { return *(*T)(unsafe.Pointer(&data)) }

// longName is the length of a name that is kept in a box. Names in Kubernetes are shorter.
const longName = 1<<16 - 1

// splitName takes a name apart. Its bytes stay where the caller has them.
func splitName(name string) (length uint32, first word) {
	switch {
	case len(name) >= longName:
		return longName, box(name)
	case name == "":
		return 0, word{} // an empty string may point anywhere
	}
	return uint32(len(name)), word{unsafe.Pointer(unsafe.StringData(name))}
}

func joinName(length uint32, first word) string {
	if length == longName {
		return *unbox[string](first)
	}
	return unsafe.String((*byte)(first.p), length)
}
