package table

import "unsafe"

// What others need who keep many objects or keys, as a table does: each in few words, and
// read without being copied.

// Parts are what stands before a key's first slash, if there is one, and the rest.
func (k Key) Parts() (space, name string, spaced bool) { return k.space, k.name, k.spaced }

// KeyFrom is the key with such parts.
func KeyFrom(space, name string, spaced bool) Key {
	return Key{space: space, name: name, spaced: spaced}
}

// EachKey calls f with the number and the key of each cell. The caller is the one who may
// write; what a write aside has changed so far does not show.
func (t *Table) EachKey(f func(number uint32, key Key)) {
	s := t.state.Load()
	for number := range s.cells {
		if c, exists := s.read(number); exists {
			f(number, s.key(&c))
		}
	}
}

// Words takes objects apart into a word each and the number of their type. One goroutine
// takes apart; any number put together meanwhile what has been handed to them.
type Words struct{ types *types }

// NewWords knows no types yet.
func NewWords() Words { return Words{newTypes()} }

// Apart is the number of an object's type, and a word; the object lives as long as that
// is kept.
func (w Words) Apart(obj any) (typ uint16, word unsafe.Pointer) {
	id, word := w.types.store(obj)
	return uint16(id), word
}

// Together is the object of which that was kept.
func (w Words) Together(typ uint16, word unsafe.Pointer) any {
	return w.types.load(typeID(typ), word)
}

// From is the first entry whose place is not before next, and the place after it; ok is
// false if there is none. Places begin at 0.
func (s *Snapshot) From(next uint32) (e Entry, after uint32, ok bool) {
	for ; next < s.state.cells; next++ {
		p := s.state.pages[next/perPage].Load()
		if p == nil {
			continue
		}
		c := p.chunks[next/chunkLen%pageLen].Load()
		if c != nil && next%chunkLen < cellsInChunk && c.cells[next%chunkLen].value != nil {
			return Entry{s, &c.cells[next%chunkLen]}, next + 1, true
		}
	}
	return Entry{}, next, false
}
