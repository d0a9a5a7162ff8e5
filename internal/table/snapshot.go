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
	hash := key.hash(s.seed)
	number, exists := s.state.find(key, hash)
	if !exists {
		return Entry{}, false
	}
	return s.entry(number), true
}

func (s *Snapshot) entry(number uint32) Entry {
	return Entry{s, s.state.cell(number)}
}

// cells iterates over the cells that are not free.
func (s *Snapshot) cells(yield func(*cell) bool) {
	for cells := range s.chunks {
		for i := range cells {
			c := &cells[i]
			if c.content.isFree() {
				continue
			}
			if !yield(c) {
				return
			}
		}
	}
}

// chunks iterates over the chunks that have cells.
func (s *Snapshot) chunks(yield func(*chunk) bool) {
	for first := uint32(0); first < s.state.cells; first += chunkLen {
		number := first / chunkLen
		p := s.state.chunks.get(number)
		if !yield(&p.value) {
			return
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
		e = s.entry(next)
		if !e.cell.content.isFree() {
			return e, next + 1, true
		}
	}
	return Entry{}, next, false
}

// EachWithKey is Each with the texts of the keys. The texts of a chunk share one allocation of
// about 4 kB, which each of them keeps alive.
func (s *Snapshot) EachWithKey(f func(key string, e Entry) bool) {
	var buffer [32 * chunkLen]byte
	for cells := range s.chunks {
		joined := s.state.appendTexts(buffer[:0], cells)
		texts := string(joined)
		for i := range cells {
			c := cells[i].content
			if c.isFree() {
				continue
			}
			text := c.text()
			if c.namespace != 0 {
				namespace := s.state.namespaces[c.namespace]
				length := len(namespace) + 1 + len(text)
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
		obj, isT := c.content.object(s.types).(T)
		if isT && !f(obj) {
			return
		}
	}
}

// AppendObjectsOf appends all objects of a snapshot that are Ts to a list.
func AppendObjectsOf[T any](list []T, s *Snapshot) []T {
	for c := range s.cells {
		obj, isT := c.content.object(s.types).(T)
		if isT {
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
			c := s.state.cell(number).content
			obj, isT := c.object(s.types).(T)
			if isT {
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
	_, isEvery := any(&none).(*any)
	if isEvery {
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
