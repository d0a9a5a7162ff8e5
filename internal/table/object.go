package table

import (
	"sync/atomic"
	"unsafe"
)

// words is how Go represents an any: its type and its value, which is a pointer always
// (sync/atomic.Value relies on the same). A table keeps the two apart: the types of its
// objects are few, and what is left of an object is one word that can be loaded and
// stored atomically.
type words struct{ typ, value unsafe.Pointer }

func apart(obj any) words { return *(*words)(unsafe.Pointer(&obj)) }

func together(typ, value unsafe.Pointer) (obj any) {
	*(*words)(unsafe.Pointer(&obj)) = words{typ, value}
	return obj
}

// HasWord is false for nil and for what is nothing but one nil pointer: of Go's pointers, maps,
// functions and channels the nil ones.
func HasWord(obj any) bool { return apart(obj).value != nil }

// typeID is the number of a type in a table.
type typeID uint8

const (
	// noType is that of a cell that is free.
	noType typeID = iota
	// boxed is that of a value whose word is a *any: it is of one type too many, or has
	// no word, as a nil map.
	boxed
	firstType

	mostTypes = 1<<8 - 1
)

// types are the types of the objects that a table has had. It only grows.
type types struct {
	// all is replaced to grow; readers have an older one, which has all that they meet.
	all atomic.Pointer[[]unsafe.Pointer]
	ids map[unsafe.Pointer]typeID
	// last is the type that was asked for last, for most tables have but one.
	last   unsafe.Pointer
	lastID typeID
	// boxes is true once there has been a value that is boxed, of whatever type.
	boxes atomic.Bool
}

func newTypes() *types {
	t := &types{ids: map[unsafe.Pointer]typeID{}}
	all := make([]unsafe.Pointer, firstType)
	t.all.Store(&all)
	return t
}

// store is what is kept of an object.
func (t *types) store(obj any) (id typeID, value unsafe.Pointer) {
	w := apart(obj)
	if w.typ == t.last && w.value != nil {
		return t.lastID, w.value
	}
	id, known := t.ids[w.typ]
	all := *t.all.Load()
	switch {
	case w.value == nil, !known && len(all) >= mostTypes:
		t.boxes.Store(true)
		return boxed, box(obj)
	case !known:
		id = typeID(len(all))
		grown := append(all, w.typ)
		t.all.Store(&grown)
		t.ids[w.typ] = id
	}
	t.last, t.lastID = w.typ, id
	return id, w.value
}

func box(obj any) unsafe.Pointer { return unsafe.Pointer(&obj) }

// load is the object of which that was kept.
func (t *types) load(id typeID, value unsafe.Pointer) any {
	if id == boxed {
		return *(*any)(value)
	}
	return together((*t.all.Load())[id], value)
}

// Same says whether two are one object, and calls nothing of theirs: the same pointer or map, or
// the same copy of a value, which is how a table keeps what it was given. It is false for nil.
func Same(a, b any) bool { return a != nil && apart(a) == apart(b) }
