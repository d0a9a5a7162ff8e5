package table

import (
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
)

// Table is objects by key, and by the values that they have in indexes. One goroutine at a
// time may write (see Begin); any number may read meanwhile, without waiting for more than
// a few writes. The zero value is not ready: see New.
type Table struct {
	seed  maphash.Seed
	types *types
	// label is asked for what a snapshot is labelled with.
	label func() Label

	// changes is odd while the state that readers see is being changed where it
	// stands: whoever has found it even, and the same afterwards, has read one state.
	changes atomic.Uint64
	// state is what readers see.
	state atomic.Pointer[state]
	// latest is a snapshot of just that state; nil if none has been asked for since.
	latest atomic.Pointer[Snapshot]

	// touched is what GetAll has added up.
	touched atomic.Uint64

	// renumbered counts the changes after which a number may be that of another cell.
	renumbered atomic.Uint64

	// mu is held while what readers see is changed: by at most inPlace writes, or by
	// one store of a pointer.
	mu sync.Mutex
	// epoch is the owner of what may be changed where it stands: what has another owner
	// is part of a snapshot. It is never 0.
	epoch uint64
	// frozen is true if all of the state that readers see is part of a snapshot.
	frozen atomic.Bool

	// The rest is the writer's alone. open is the write that is under way.
	writer
	open Write
}

// Label is what the owner of a table says of one of its states.
type Label struct {
	// Version is the resource version up to which the table holds what the source had.
	Version string
	// Writes counts the writes that led to it.
	Writes uint64
}

// state is all that there is to read. It is either frozen and never changes, or the writer
// changes it where it stands.
type state struct {
	short *shortcuts
	pages []atomic.Pointer[page]
	keys  *directory
	// spaces are what keys begin with, by number; 0 is for keys without a slash. More
	// are appended, none is taken out until the table is packed.
	spaces []string
	// cells is how many there are, free ones included, len how many are not free.
	cells uint32
	len   int

	indexes []*index
}

// page is some chunks: what is copied when one of them is.
type page struct {
	owner  uint64
	chunks [pageLen]atomic.Pointer[chunk]
	owners [pageLen]uint64
	// kinds are the types of all objects in each of the chunks, noType if they are of
	// several.
	kinds [pageLen]typeID
}

const (
	pageLen = 32
	perPage = pageLen * chunkLen
)

// New makes an empty table. label is called each time a snapshot is made, under a lock: it
// must return what was set in the last Commit or Relabel.
func New(indexes int, label func() Label) *Table {
	t := &Table{seed: maphash.MakeSeed(), types: newTypes(), label: label, epoch: 1}
	t.writer = newWriter(indexes)
	t.state.Store(t.newState(indexes))
	return t
}

func (t *Table) newState(indexes int) *state {
	s := &state{keys: newDirectory(t.epoch), spaces: []string{""}}
	s.short = s.newShortcuts(0)
	for range indexes {
		s.indexes = append(s.indexes, newIndex(t.epoch, t.seed))
	}
	return s
}

// Found is what Get finds.
type Found struct {
	Object any
	// Mark is what the writer has kept with it.
	Mark uint32
	// Number is that of its cell. It is its own until Renumbered says something else.
	Number uint32
}

// Renumbered changes whenever a number may have become that of another cell, or of none.
// Whoever keeps numbers reads it before the first of them, and again when he uses them.
func (t *Table) Renumbered() uint64 { return t.renumbered.Load() }

// Get returns what is under a key. It takes no lock unless it meets one write after the
// other, and then not for longer than a few of them.
func (t *Table) Get(key Key) (Found, bool) {
	hash := key.hash(t.seed)
	if s, number, c := t.first(hash); s != nil && s.hasKey(c, key) {
		return t.found(number, c), true
	}
	return t.get(key, hash)
}

// GetText is Get for the key with a text.
func (t *Table) GetText(text string) (Found, bool) {
	hash := hashOfText(t.seed, text)
	if s, number, c := t.first(hash); s != nil && s.hasText(c, text) {
		return t.found(number, c), true
	}
	return t.get(Key{name: text, origin: uncut}, hash)
}

func (t *Table) found(number uint32, c cell) Found {
	return Found{t.types.load(c.head.typ(), c.value), c.tail.mark(), number}
}

// first is most of what get does, in one piece, for what is most often so: that nobody
// writes, and that the first number with the tag is the right one. If not, the state is nil.
func (t *Table) first(hash uint64) (*state, uint32, cell) {
	at := t.changes.Load()
	s := t.state.Load()
	g := &s.segment(hash).groups[home(hash)]
	if matches := g.having(tagOf(hash) * low); matches != 0 {
		number := atomic.LoadUint32(&g.numbers[slotOf(matches)])
		if c, exists := s.read(number); exists && at&1 == 0 && t.changes.Load() == at && c.hasHash(hash) {
			return s, number, c
		}
	}
	return nil, 0, cell{}
}

func (t *Table) get(key Key, hash uint64) (Found, bool) {
	const attempts = 8
	for range attempts {
		if at := t.changes.Load(); at&1 == 0 {
			if found, ok, whole := t.tryGet(key, hash, at); whole {
				return found, ok
			}
		}
		runtime.Gosched()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok, _ := t.tryGet(key, hash, t.changes.Load())
	return found, ok
}

// tryGet is whole if nothing has been written since the count of changes was at.
func (t *Table) tryGet(key Key, hash, at uint64) (found Found, ok, whole bool) {
	s := t.state.Load()
	var search search
	search.begin(s.segment(hash), hash)
	for {
		place := search.next()
		if place < 0 {
			return found, false, t.changes.Load() == at
		}
		number := search.segment.number(place)
		c, exists := s.read(number)
		if t.changes.Load() != at {
			return found, false, false // c may be of two cells
		}
		if exists && c.hasHash(hash) && s.hasKey(c, key) {
			return t.found(number, c), true, true
		}
	}
}

// read reads a cell; exists is false for a number that has none.
func (s *state) read(number uint32) (c cell, exists bool) {
	chunk, at := s.chunk(number), number%chunkLen
	if chunk == nil || at >= cellsInChunk {
		return c, false
	}
	c = chunk.cells[at].read()
	return c, !c.head.isFree()
}

// hasKey says whether a key is that of a cell with the same hash, as a reader asks: the name
// itself, which is wherever the caller had it, is looked at only where another key that is
// here has the same hash. So a key that is not here is taken for one that is if all 64 bits
// of the hash, its space, and the length of its name are the same; nobody knows the secret
// that the hash is keyed with.
func (s *state) hasKey(c cell, key Key) bool {
	if key.origin == uncut {
		return s.hasText(c, key.name)
	}
	if c.head.isAlike() || c.head.space() == noSpace {
		return s.isKey(c, key)
	}
	return s.hasSpace(c.head.space(), key) && c.head.nameLen() == min(len(key.name), longName)
}

// hasText is hasKey for a text. It is cut where the cell's name would begin: that is shorter
// than to look for the slash.
func (s *state) hasText(c cell, text string) bool {
	space, length := c.head.space(), c.head.nameLen()
	if length == longName || c.head.isAlike() || space == noSpace {
		return s.isKey(c, KeyOf(text))
	}
	if space == 0 {
		return length == len(text)
	}
	at := len(text) - length - 1
	return at >= 0 && text[at] == '/' && s.spaces[space] == text[:at]
}

// isKey says whether a key is that of a cell, without a doubt.
func (s *state) isKey(c cell, key Key) bool {
	if c.head.space() == noSpace {
		return *(*Key)(c.namep) == key
	}
	return s.hasSpace(c.head.space(), key) && c.name() == key.name
}

func (s *state) hasSpace(space uint32, key Key) bool {
	if space == 0 || !key.spaced {
		return space == 0 && !key.spaced
	}
	return s.spaces[space] == key.space
}

// key is the key of a cell.
func (s *state) key(c *cell) Key {
	space := c.head.space()
	if space == noSpace {
		return *(*Key)(c.namep)
	}
	key := Key{space: s.spaces[space], name: c.name(), spaced: space != 0}
	if key.spaced && c.head.endsText() {
		key.origin = fromText()
	}
	return key
}

// Len is how many objects there are.
func (t *Table) Len() int {
	t.mu.Lock()
	n := t.state.Load().len
	t.mu.Unlock()
	return n
}

// Cells is for how many objects there is memory.
func (t *Table) Cells() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	cells := t.state.Load().cells
	return int(cells - cells/chunkLen)
}

// Snapshot is what the table holds now: it stays so. It costs next to nothing, and the
// writer a copy of each chunk that it changes afterwards.
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
	kept := *t.state.Load()
	kept.short = nil // they go on changing, and would keep what is no part of the snapshot
	s := &Snapshot{state: &kept, types: t.types, seed: t.seed, Label: t.label()}
	t.latest.Store(s)
	return s
}

// freeze makes what readers see a thing that never changes. The caller holds mu.
func (t *Table) freeze() {
	if !t.frozen.Load() {
		t.frozen.Store(true)
		t.epoch++
	}
}

// Relabel calls set, which changes what label returns: nobody has a snapshot in between.
func (t *Table) Relabel(set func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.latest.Store(nil) // first: from set on it is not what label says
	set()
}
