package table

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Table holds objects by key, and by the values that they have in indexes. One goroutine at a
// time may write (see Begin); any number may read meanwhile. Create one with New.
type Table struct {
	seed  maphash.Seed
	types *types
	label func() string

	// changes is odd while the visible state is changed in place: whatever was read between
	// two loads of the same even number is consistent.
	changes atomic.Uint64
	// state is what readers see.
	state atomic.Pointer[state]
	// latest is the snapshot of that state, nil if nobody has asked for it.
	latest atomic.Pointer[Snapshot]
	// mu is held while the visible state is changed: by a write in place, or while one
	// pointer is stored.
	mu sync.Mutex
	// epoch is that of the pieces that may be changed in place; older ones may be part of a
	// snapshot. It is never 0.
	epoch uint64
	// frozen is true if the whole visible state is part of a snapshot.
	frozen atomic.Bool

	// The rest is used only by the goroutine that may write.
	writer
	listings []*Listing
	open     Write
}

// state is one state of a table. It is either frozen, and never changes, or changed in place by
// the writer. Get reads keys, chunks and spaces without a lock: those are changed only
// element by element, or in another state (see Write.reshape).
type state struct {
	keys   directory
	chunks cowList[chunk]
	// spaces are the first parts of keys with their slash, by number; 0 is that of keys without.
	spaces []string
	// cells counts all cells, including free ones, len those that are not free.
	cells   uint32
	len     int
	indexes []*index
}

// chunkLen is how many cells are copied together: with 8 bytes of the allocator, 128 fill 3,200.
const chunkLen = 128

type chunk [chunkLen]cell

// cell is an object and its key, in 24 bytes. Its words are accessed atomically where they may
// be written meanwhile; they are plain so that a chunk can be copied.
type cell struct {
	value word // nil if the cell is free
	name  word // see splitName
	// kind is the type of the object, and the length of the name from the ninth bit on.
	kind  uint32
	space uint32
}

func (c *cell) typ() typeID    { return typeID(c.kind) }
func (c *cell) nameOf() string { return joinName(c.kind>>8, c.name) }
func (c *cell) isFree() bool   { return c.typ() == noType }

// load reads a cell that may be written meanwhile. Its pointers may be followed only after
// Table.changes has been found unchanged.
func (c *cell) load() cell {
	return cell{c.value.load(), c.name.load(), atomic.LoadUint32(&c.kind), atomic.LoadUint32(&c.space)}
}

// store writes the words that differ: each atomic store takes as long as a lock.
func (c *cell) store(to cell) {
	c.value.store(to.value)
	if c.name != to.name {
		c.name.store(to.name)
	}
	if c.kind != to.kind {
		atomic.StoreUint32(&c.kind, to.kind)
	}
	if c.space != to.space {
		atomic.StoreUint32(&c.space, to.space)
	}
}

// New makes an empty table. label is called under a lock for each snapshot: it must return
// what was set in the last Commit or Relabel.
func New(indexes int, label func() string) *Table {
	t := &Table{seed: maphash.MakeSeed(), types: newTypes(), label: label, epoch: 1}
	t.writer = newWriter(indexes)
	t.state.Store(t.newState(indexes))
	return t
}

func (t *Table) newState(indexes int) *state {
	s := &state{keys: newDirectory(t.epoch), spaces: []string{""}}
	for range indexes {
		s.indexes = append(s.indexes, newIndex(t.epoch, t.seed))
	}
	return s
}

// Found is an entry that a look-up has found. Its number is that of its cell, until the entry is
// removed or the table packed.
type Found struct {
	Object any
	Number uint32
}

// Get returns the entry of a key. It takes no lock unless it meets a write in place, for which it
// waits then.
func (t *Table) Get(key Key) (Found, bool) {
	hash := key.hash(t.seed)
	if s, number, c := t.first(hash); s != nil && s.isKey(c, key) {
		return t.found(number, c), true
	}
	return t.search(key, hash)
}

// GetText is Get for the key with a text.
func (t *Table) GetText(text string) (Found, bool) {
	hash := hashOf(maphash.String(t.seed, text))
	if s, number, c := t.first(hash); s != nil && s.isText(c, text) {
		return t.found(number, c), true
	}
	return t.search(KeyOf(text), hash)
}

// first returns the first cell with a hash, nearly always the only one, or a free one if there
// is none. The state is nil if a write was met.
func (t *Table) first(hash uint32) (s *state, number uint32, c cell) {
	at, s := t.changes.Load(), t.state.Load()
	segment := s.keys.segment(hash)
	for i := range groups {
		g := &segment.groups[(home(hash)+i)%groups]
		if matches := g.matches(hash); matches != 0 {
			number = g.number(matches)
			c = s.read(number)
			break
		}
		if g.matches(0) != 0 {
			break
		}
	}
	if at&1 != 0 || t.changes.Load() != at {
		s = nil
	}
	return s, number, c
}

// search is Get for a key whose cell is not the first one with its hash, and for a reader that
// meets a write.
func (t *Table) search(key Key, hash uint32) (Found, bool) {
	if found, ok, whole := t.attempt(key, hash); whole {
		return found, ok
	}
	t.mu.Lock() // waits for the write
	defer t.mu.Unlock()
	if number, c, ok := t.state.Load().find(key, hash, nil); ok {
		return t.found(number, c), true
	}
	return Found{}, false
}

// attempt searches without a lock. It is whole if nothing was written meanwhile.
func (t *Table) attempt(key Key, hash uint32) (found Found, ok, whole bool) {
	at := t.changes.Load()
	if at&1 != 0 {
		return found, false, false
	}
	unchanged := func() bool { return t.changes.Load() == at }
	number, c, ok := t.state.Load().find(key, hash, unchanged)
	if ok {
		return t.found(number, c), true, true
	}
	return found, false, unchanged()
}

func (t *Table) found(number uint32, c cell) Found {
	return Found{t.types.load(c.typ(), c.value), number}
}

// find searches for the cell of a key. Where the state may be written meanwhile, unchanged says
// whether it was not; if it was, find returns false.
func (s *state) find(key Key, hash uint32, unchanged func() bool) (number uint32, c cell, ok bool) {
	s.keys.find(hash, func(candidate uint32) bool {
		number, c = candidate, s.read(candidate)
		torn := unchanged != nil && !unchanged()
		ok = !torn && s.isKey(c, key)
		return ok || torn
	})
	return number, c, ok
}

// read reads a cell: a free one for a number without a cell.
func (s *state) read(number uint32) (c cell) {
	if chunk := s.chunks.get(number / chunkLen); chunk != nil {
		c = chunk[number%chunkLen].load()
	}
	return c
}

func (s *state) isKey(c cell, key Key) bool {
	return !c.isFree() && c.nameOf() == key.name && s.spaceOf(&c) == key.space
}

// isText is isKey for the key with a text, which is cut where the cell's name would begin.
func (s *state) isText(c cell, text string) bool {
	name := c.nameOf()
	at := len(text) - len(name)
	return at >= 0 && name == text[at:] && s.spaces[c.space] == text[:at] && !c.isFree()
}

// spaceOf is the first part of a cell's key without the slash.
func (s *state) spaceOf(c *cell) string {
	space := s.spaces[c.space]
	return space[:max(1, len(space))-1]
}

func (s *state) key(c *cell) Key { return Key{s.spaceOf(c), c.nameOf()} }

// each calls f with a copy of each cell that is not free, whose entry f may change.
func (s *state) each(f func(number uint32, c cell, key Key)) {
	for number := range s.cells {
		if c := s.read(number); !c.isFree() {
			f(number, c, s.key(&c))
		}
	}
}

// current is the state that the goroutine that may write sees.
func (t *Table) current() *state {
	if t.open.s != nil {
		return t.open.s
	}
	return t.state.Load()
}

// Len is how many objects there are.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state.Load().len
}

// Cells is for how many objects there is memory.
func (t *Table) Cells() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(t.state.Load().cells)
}

// Snapshot returns the state of now, which stays as it is. It is O(1); the writer then copies
// each piece of about 2 kB before it changes it.
func (t *Table) Snapshot() *Snapshot {
	if s := t.latest.Load(); s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.latest.Load(); s != nil {
		return s
	}
	t.freeze()
	s := &Snapshot{state: t.state.Load(), types: t.types, seed: t.seed, Version: t.label()}
	t.latest.Store(s)
	return s
}

// freeze ends the epoch: the visible state never changes again. The caller holds mu.
func (t *Table) freeze() {
	if !t.frozen.Load() {
		t.frozen.Store(true)
		t.epoch++
	}
}

// Relabel calls set, which changes what label returns, while nobody takes a snapshot.
func (t *Table) Relabel(set func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latest.Store(nil) // before set: it no longer has the label
	set()
}
