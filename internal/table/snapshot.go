package table

import (
	"hash/maphash"
	"unsafe"
)

// Snapshot is what a table held at one moment. It never changes, and may be used by any
// number of goroutines, for as long as it is kept: it costs what has changed since.
type Snapshot struct {
	Label
	state *state
	types *types
	seed  maphash.Seed
}

// Entry is an object of a snapshot. It is good for as long as the snapshot.
type Entry struct {
	snapshot *Snapshot
	cell     *slot
}

// Len is how many objects there are.
func (s *Snapshot) Len() int { return s.state.len }

// Get returns what is under a key.
func (s *Snapshot) Get(key Key) (Entry, bool) {
	hash := key.hash(s.seed)
	var search search
	search.begin(s.state.keys.segment(hash), hash)
	for place := search.next(); place >= 0; place = search.next() {
		e := s.entry(search.segment.number(place))
		if c := e.cell.read(); c.hasHash(hash) && s.state.hasKey(c, key) {
			return e, true
		}
	}
	return Entry{}, false
}

// entry is that of a cell that is not free.
func (s *Snapshot) entry(number uint32) Entry { return Entry{s, s.cell(number)} }

// cell is that of a number, which must have one.
func (s *Snapshot) cell(number uint32) *slot {
	chunk := s.state.pages[number/perPage].Load().chunks[number/chunkLen%pageLen].Load()
	return &chunk.cells[number%chunkLen]
}

// Object is the object.
func (e Entry) Object() any { return e.snapshot.types.load(e.cell.typ(), e.cell.value) }

// Key is its key.
func (e Entry) Key() Key {
	c := e.cell.read()
	return e.snapshot.state.key(&c)
}

// Mark is its mark.
func (e Entry) Mark() uint32 { return tail(e.cell.tail.Load()).mark() }

// chunks calls f with all chunks, and the type of all objects in each, nil if they are of
// several.
func (s *Snapshot) chunks(f func(c *chunk, typ unsafe.Pointer) bool) bool {
	types := *s.types.all.Load()
	for i := range s.state.pages {
		p := s.state.pages[i].Load()
		if p == nil {
			continue
		}
		for at := range p.chunks {
			if c := p.chunks[at].Load(); c != nil && !f(c, types[p.kinds[at]]) {
				return false
			}
		}
	}
	return true
}

// Each calls f with every entry, in no order, as long as it returns true.
func (s *Snapshot) Each(f func(Entry) bool) {
	s.chunks(func(c *chunk, _ unsafe.Pointer) bool {
		for at := range c.cells {
			if e := &c.cells[at]; e.value != nil && !f(Entry{s, e}) {
				return false
			}
		}
		return true
	})
}

// Objects calls f with every object, in no order, as long as it returns true.
func (s *Snapshot) Objects(f func(any) bool) {
	s.chunks(func(c *chunk, typ unsafe.Pointer) bool {
		if typ == nil {
			return c.each(s, f)
		}
		for at := range c.cells {
			if value := c.cells[at].value; value != nil && !f(together(typ, value)) {
				return false
			}
		}
		return true
	})
}

// EachWithKey is Each with the texts of the keys.
func (s *Snapshot) EachWithKey(f func(key string, e Entry) bool) {
	var room [cellsInChunk]string
	s.chunks(func(c *chunk, _ unsafe.Pointer) bool {
		texts := s.state.appendTexts(room[:0], []*chunk{c})
		for at := range c.cells {
			e := &c.cells[at]
			if e.value == nil {
				continue
			}
			if !f(texts[0], Entry{s, e}) {
				return false
			}
			texts = texts[1:]
		}
		return true
	})
}

// Values are those that at least one object has in an index, and how many there are.
func (s *Snapshot) Values(index int) (all func(func(string) bool), count int) {
	i := s.state.indexes[index]
	return func(yield func(string) bool) { i.each(func(r *record) bool { return yield(r.text) }) }, i.len
}

// Having calls f with every entry that has a value in an index, as long as it returns true.
func (s *Snapshot) Having(index int, value string, f func(Entry) bool) {
	p, _ := s.postings(index, value)
	if p != nil {
		p.each(func(number uint32) bool { return f(s.entry(number)) })
	}
}

// HavingLen is how many have it.
func (s *Snapshot) HavingLen(index int, value string) int {
	p, found := s.postings(index, value)
	if !found {
		return 0
	}
	return int(p.len)
}

func (s *Snapshot) postings(index int, value string) (p *postings, found bool) {
	i := s.state.indexes[index]
	number, found := i.find(value, hashOfText(s.seed, value))
	if !found {
		return nil, false
	}
	return &i.record(number).postings, true
}
