package table

import (
	"hash/maphash"
	"slices"
)

// Snapshot is the state of a table at one point in time. It never changes, and may be used by
// any number of goroutines. A snapshot that is kept costs copies of what is changed since, and
// the objects that it alone has. All its methods return entries unordered.
type Snapshot struct {
	// Version is the table's label at that time: the resource version up to which it holds the source's changes.
	Version string

	state *state
	types *types
	seed  maphash.Seed
}

// Entry is an object of a snapshot and its key.
type Entry struct {
	snapshot *Snapshot
	cell     *cell
}

// Object is the object.
func (e Entry) Object() any { return e.snapshot.types.load(e.cell.typ(), e.cell.value) }

// Key is its key.
func (e Entry) Key() Key { return e.snapshot.state.key(e.cell) }

// Len is how many objects there are.
func (s *Snapshot) Len() int { return s.state.len }

// Get returns the entry of a key.
func (s *Snapshot) Get(key Key) (Entry, bool) {
	number, _, ok := s.state.find(key, key.hash(s.seed), nil)
	if !ok {
		return Entry{}, false
	}
	return Entry{s, s.cell(number)}, true
}

// cell is that of a number, which must have one.
func (s *Snapshot) cell(number uint32) *cell {
	return &s.state.chunks.get(number / chunkLen)[number%chunkLen]
}

// chunks are all chunks.
func (s *Snapshot) chunks(yield func(*chunk) bool) {
	for at := uint32(0); at*chunkLen < s.state.cells; at++ {
		if !yield(s.state.chunks.get(at)) {
			return
		}
	}
}

// Each calls f with every entry until it returns false.
func (s *Snapshot) Each(f func(Entry) bool) {
	for c := range s.chunks {
		for at := range c {
			if e := &c[at]; !e.isFree() && !f(Entry{s, e}) {
				return
			}
		}
	}
}

// From is the first entry whose place is not before next, and the place after it; ok is false
// if there is none. Places begin at 0.
func (s *Snapshot) From(next uint32) (e Entry, after uint32, ok bool) {
	for ; next < s.state.cells; next++ {
		if !s.cell(next).isFree() {
			return Entry{s, s.cell(next)}, next + 1, true
		}
	}
	return Entry{}, next, false
}

// EachWithKey is Each with the texts of the keys. The texts of a chunk are made in one piece of
// memory of some 2 kB, which each of them keeps alive.
func (s *Snapshot) EachWithKey(f func(key string, e Entry) bool) {
	var room [32 * chunkLen]byte
	for c := range s.chunks {
		made := room[:0]
		for at := range c {
			if e := &c[at]; e.space != 0 && !e.isFree() {
				made = append(made, s.state.spaces[e.space]...)
				made = append(made, e.nameOf()...)
			}
		}
		texts := string(made)
		for at := range c {
			e := &c[at]
			if e.isFree() {
				continue
			}
			text := e.nameOf()
			if e.space != 0 {
				length := len(s.state.spaces[e.space]) + len(text)
				text, texts = texts[:length], texts[length:]
			}
			if !f(text, Entry{s, e}) {
				return
			}
		}
	}
}

// AppendKeys appends the texts of all keys to a list.
func (s *Snapshot) AppendKeys(list []string) []string {
	s.EachWithKey(func(key string, _ Entry) bool {
		list = append(list, key)
		return true
	})
	return list
}

// Values are those that at least one object has in an index, and how many there are.
func (s *Snapshot) Values(index int) (all func(func(string) bool), count int) {
	i := s.state.indexes[index]
	return func(yield func(string) bool) { i.each(func(r *record) bool { return yield(r.text) }) }, i.len
}

func (s *Snapshot) postings(index int, value string) *postings {
	i := s.state.indexes[index]
	if number, found := i.find(value, i.hash(value)); found {
		return &i.record(number).postings
	}
	return &postings{}
}

// HavingLen is how many objects have a value in an index.
func (s *Snapshot) HavingLen(index int, value string) int { return int(s.postings(index, value).len) }

// Having calls f with every entry that has a value in an index until it returns false.
func (s *Snapshot) Having(index int, value string, f func(Entry) bool) {
	for numbers := range s.postings(index, value).runs {
		for _, number := range numbers {
			if !f(Entry{s, s.cell(number)}) {
				return
			}
		}
	}
}

// typed reads objects of a snapshot as Ts.
type typed[T any] struct {
	types []word
	// id is the type of cells whose word is a T; no cell's if T is no pointer type.
	id typeID
}

func newTyped[T any](s *Snapshot) typed[T] {
	t := typed[T]{*s.types.all.Load(), maxTypes}
	if at := slices.Index(t.types, pointerType[T]()); at >= int(firstType) {
		t.id = typeID(at)
	}
	return t
}

// read returns the object of a cell, which may be free.
func (t *typed[T]) read(c *cell) (T, bool) {
	if c.typ() == t.id {
		return as[T](c.value), true
	}
	return t.convert(c)
}

func (t *typed[T]) convert(c *cell) (obj T, ok bool) {
	if c.isFree() {
		return obj, false
	}
	loaded := load(t.types, c.typ(), c.value)
	obj, ok = loaded.(T)
	return obj, ok || loaded == nil && any(obj) == nil // nil is of every interface type
}

// ObjectsOf calls f with every object of a snapshot that is a T until it returns false.
func ObjectsOf[T any](s *Snapshot, f func(T) bool) {
	as := newTyped[T](s)
	for c := range s.chunks {
		for at := range c {
			if obj, ok := as.read(&c[at]); ok && !f(obj) {
				return
			}
		}
	}
}

// AppendObjectsOf appends all objects of a snapshot that are Ts to a list.
func AppendObjectsOf[T any](list []T, s *Snapshot) []T {
	t := newTyped[T](s)
	for at := uint32(0); at*chunkLen < s.state.cells; at++ {
		cells := s.state.chunks.get(at)
		for i := range cells {
			if c := &cells[i]; c.typ() == t.id {
				list = append(list, as[T](c.value))
			} else if obj, ok := t.convert(c); ok {
				list = append(list, obj)
			}
		}
	}
	return list
}

// ObjectsOfHaving returns the Ts that have a value in an index.
func ObjectsOfHaving[T any](s *Snapshot, index int, value string) []T {
	p, as := s.postings(index, value), newTyped[T](s)
	list := make([]T, 0, p.len)
	for numbers := range p.runs {
		for _, number := range numbers {
			if obj, ok := as.read(s.cell(number)); ok {
				list = append(list, obj)
			}
		}
	}
	return list
}

// HasOnly reports whether all objects of a snapshot are certainly Ts: its table has never had
// others. It is false for an interface type other than any.
func HasOnly[T any](s *Snapshot) bool {
	var none T
	if _, every := any(&none).(*any); every {
		return true
	}
	its, types := split(none).typ, *s.types.all.Load()
	if s.types.boxes.Load() || its.isNil() || len(types) > int(firstType)+1 {
		return false
	}
	return len(types) == int(firstType) || types[firstType] == its
}
