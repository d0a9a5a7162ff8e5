package table

import "hash/maphash"

// Snapshot is the state of a table at one point in time. It never changes, and may be used
// concurrently. A retained snapshot makes later changes copy pieces, and keeps its objects alive.
// All methods return entries unordered.
type Snapshot struct {
	// Version is the resource version up to which the snapshot has the source's changes.
	Version string

	state *state
	types []word
	seed  maphash.Seed
}

// Entry is an object of a snapshot and its key.
type Entry struct {
	snapshot *Snapshot
	cell     *cell
}

// Object returns the object.
func (e Entry) Object() any {
	return e.cell.content.object(e.snapshot.types)
}

// Key returns the key.
func (e Entry) Key() Key {
	return e.snapshot.state.key(e.cell.content)
}

// Origin returns the object's origin.
func (e Entry) Origin() Origin {
	return e.cell.origin()
}

// Len returns the number of objects.
func (s *Snapshot) Len() int {
	return s.state.len
}

// Get returns the entry of a key.
func (s *Snapshot) Get(key Key) (Entry, bool) {
	number, exists := s.state.find(key, key.hash(s.seed))
	if !exists {
		return Entry{}, false
	}
	return Entry{s, s.state.cell(number)}, true
}

// cells iterates over the cells that are not free.
func (s *Snapshot) cells(yield func(*cell) bool) {
	for at := uint32(0); at*chunkLen < s.state.cells; at++ {
		cells := &s.state.chunks.get(at).value
		for i := range cells {
			if !cells[i].content.isFree() && !yield(&cells[i]) {
				return
			}
		}
	}
}

// Each calls f with each entry until it returns false.
func (s *Snapshot) Each(f func(Entry) bool) {
	for c := range s.cells {
		if !f(Entry{s, c}) {
			return
		}
	}
}

// From returns the first entry at or after the place next, and the place after it. ok is false if
// there is none. Places begin at 0.
func (s *Snapshot) From(next uint32) (e Entry, after uint32, ok bool) {
	for ; next < s.state.cells; next++ {
		c := s.state.cell(next)
		if !c.content.isFree() {
			return Entry{s, c}, next + 1, true
		}
	}
	return Entry{}, next, false
}

// EachWithKey is Each with the texts of the keys. The texts of a chunk share one allocation of
// about 4 kB, which each of them keeps alive.
func (s *Snapshot) EachWithKey(f func(key string, e Entry) bool) {
	var buffer [32 * chunkLen]byte
	for at := uint32(0); at*chunkLen < s.state.cells; at++ {
		cells := &s.state.chunks.get(at).value
		texts := string(s.state.appendTexts(buffer[:0], cells))
		for i := range cells {
			c := cells[i].content
			if c.isFree() {
				continue
			}
			text := c.text()
			if c.namespace != 0 {
				length := len(s.state.namespaces[c.namespace]) + 1 + len(text)
				text = texts[:length]
				texts = texts[length:]
			}
			if !f(text, Entry{s, &cells[i]}) {
				return
			}
		}
	}
}

// appendTexts appends the texts of the keys of a chunk, except those that are only a name.
func (s *state) appendTexts(texts []byte, cells *chunk) []byte {
	for i := range cells {
		c := cells[i].content
		if !c.isFree() && c.namespace != 0 {
			texts = s.key(c).appendTo(texts)
		}
	}
	return texts
}

// Values returns an iterator over the values that at least one object has in an index, and their
// number.
func (s *Snapshot) Values(index int) (all func(func(string) bool), count int) {
	i := s.state.indexes[index]
	return i.each, i.len
}

func (s *Snapshot) postings(index int, value string) *postings {
	i := s.state.indexes[index]
	number, found := i.find(value, i.hash(value))
	if !found {
		return &postings{}
	}
	return &i.record(number).postings
}

// HavingLen returns the number of objects with a value in an index.
func (s *Snapshot) HavingLen(index int, value string) int {
	return int(s.postings(index, value).len)
}

// Having calls f with each entry that has a value in an index until it returns false.
func (s *Snapshot) Having(index int, value string, f func(Entry) bool) {
	for _, block := range s.postings(index, value).blocks {
		for _, number := range block.value {
			if !f(Entry{s, s.state.cell(number)}) {
				return
			}
		}
	}
}

// ObjectsOf calls f with each object of a snapshot that is a T until it returns false.
func ObjectsOf[T any](s *Snapshot, f func(T) bool) {
	for c := range s.cells {
		if obj, ok := c.content.object(s.types).(T); ok && !f(obj) {
			return
		}
	}
}

// AppendObjectsOf appends all objects of a snapshot that are Ts to a list.
func AppendObjectsOf[T any](list []T, s *Snapshot) []T {
	for c := range s.cells {
		if obj, ok := c.content.object(s.types).(T); ok {
			list = append(list, obj)
		}
	}
	return list
}

// ObjectsOfHaving returns the Ts with a value in an index.
func ObjectsOfHaving[T any](s *Snapshot, index int, value string) []T {
	p := s.postings(index, value)
	list := make([]T, 0, p.len)
	for _, block := range p.blocks {
		for _, number := range block.value {
			if obj, ok := s.state.cell(number).content.object(s.types).(T); ok {
				list = append(list, obj)
			}
		}
	}
	return list
}

// HasOnly reports whether all objects of a snapshot are Ts for certain: its table has never had
// others. It is false for an interface type other than any.
func HasOnly[T any](s *Snapshot) bool {
	var none T
	if _, every := any(&none).(*any); every {
		return true
	}
	wanted := split(none).typ
	if wanted == nil {
		return false
	}
	for _, typ := range s.types[1:] {
		if typ != wanted {
			return false
		}
	}
	return true
}
