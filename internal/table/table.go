package table

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Table has objects by key, and by their values in indexes. One goroutine at a time may write (see
// Begin); any number may read concurrently. New returns one.
type Table struct {
	seed  maphash.Seed
	types types
	// version returns the version of the visible state.
	version func() string

	// changes is odd while the visible state is changed in place. Everything read between two loads
	// of the same even number is consistent.
	changes atomic.Uint64
	// visible is the state that readers see.
	visible atomic.Pointer[state]
	// snapshot is the snapshot of the visible state, nil if there is none.
	snapshot atomic.Pointer[Snapshot]
	// mu is held while the visible state is changed: during a write in place, or while a pointer is
	// stored.
	mu sync.Mutex
	// epoch is that of the pieces that may be changed in place. Older pieces may be part of a
	// snapshot. It is never 0.
	epoch uint64

	// Only the goroutine that may write uses the fields below. state is the one that it sees: the
	// visible one, unless a write is staged. Between two writes, staged has no meaning.
	state  *state
	staged bool
	// removed is true from a removal to the next Commit.
	removed bool
	// namespaces has the numbers of the namespaces in the state.
	namespaces map[string]uint32
	references references
	listings   []*Listing

	// objects is published by Commit.
	objects atomic.Int64
}

// state is one state of a table. Get reads keys, chunks and namespaces without a lock: they are
// changed only element by element, or in a copy of the state (see Table.changeState).
type state struct {
	// epoch is the table's while the writer may change the state in place. Older states never
	// change.
	epoch  uint64
	keys   directory
	chunks cowList[chunk]
	// namespaces has the namespaces of keys by number. Number 0 is for keys without one.
	namespaces []string
	// cells counts all cells, including free ones.
	cells uint32
	// free is the first free cell, counted from 1.
	free uint32
	// len counts the cells that are not free.
	len     int
	indexes []*index
	// sum is the checksum of all entries.
	sum uint64
}

// chunkLen is the number of cells that are copied together. It is a power of two, so that a number
// is split quickly.
const chunkLen = 128

type chunk [chunkLen]cell

// New returns an empty table. version returns the version set in the last Commit. It is called
// under a lock for each snapshot.
func New(indexes int, version func() string) *Table {
	t := &Table{
		seed:    maphash.MakeSeed(),
		version: version,
		epoch:   1,
	}
	t.types.all.Store(&[]word{nil})
	t.reset(indexes)
	t.visible.Store(t.state)
	return t
}

// reset makes the writer's state empty.
func (t *Table) reset(indexes int) {
	t.state = &state{
		epoch:      t.epoch,
		keys:       newDirectory(t.epoch),
		namespaces: []string{""},
	}
	t.namespaces = map[string]uint32{"": 0}
	t.references = references{}
	t.AddIndexes(indexes, nil)
}

// Checksum returns a checksum of the keys and versions of all entries, independent of their order.
// It is the same in every process if all versions are decimal. It waits for a write in place.
func (t *Table) Checksum() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.visible.Load().sum
}

// Read calls read with the number of objects and the checksum of the visible state, which does not
// change meanwhile, nor does the version. It waits for a write in place.
func (t *Table) Read(read func(objects int, checksum uint64)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.visible.Load()
	read(s.len, s.sum)
}

// Get returns the object of the key with a text. It takes no lock unless it meets a write in place,
// for which it then waits, or another key with the same hash.
func (t *Table) Get(text string) (obj any, exists bool) {
	hash := hashText(t.seed, text)
	before := t.changes.Load()
	s := t.visible.Load()
	c := s.load(hash)
	if before&1 != 0 || t.changes.Load() != before {
		return t.getLocked(text, hash) // a write was met
	}
	if c.isFree() {
		return nil, false
	}
	if !s.isText(c, text) {
		return t.getLocked(text, hash)
	}
	return t.object(c), true
}

// GetKey is Get for a key.
func (t *Table) GetKey(key Key) (obj any, exists bool) {
	var buffer textBuffer
	return t.Get(viewText(key.appendTo(buffer[:0])))
}

// load reads the first cell with a hash, nearly always the only one, of a state that may be written
// concurrently. Then the result may be of no cell. It is free if there is none.
func (s *state) load(hash uint32) content {
	number, found := s.keys.first(hash)
	if !found {
		return content{}
	}
	c := s.cell(number)
	if c == nil {
		return content{}
	}
	return c.load()
}

// getLocked is Get without a concurrent write.
func (t *Table) getLocked(text string, hash uint32) (obj any, exists bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.visible.Load()
	number, exists := s.find(KeyOf(text), hash)
	if !exists {
		return nil, false
	}
	c := s.cell(number)
	return t.object(c.content), true
}

func (t *Table) object(c content) any {
	return c.object(*t.types.all.Load())
}

// find looks up the cell of a key in a state that is not written concurrently.
func (s *state) find(key Key, hash uint32) (number uint32, exists bool) {
	return s.keys.find(hash, func(candidate uint32) bool {
		return s.isKey(s.cell(candidate).content, key)
	})
}

// cell returns the cell with a number, nil if there is none.
func (s *state) cell(number uint32) *cell {
	if p := s.chunks.get(number / chunkLen); p != nil {
		return &p.value[number%chunkLen]
	}
	return nil
}

func (s *state) isKey(c content, key Key) bool {
	return !c.isFree() && c.text() == key.name && s.namespaces[c.namespace] == key.namespace
}

// isText reports whether a cell has the key with a text. It compares the parts where they must be,
// which is faster than to split the text.
func (s *state) isText(c content, text string) bool {
	namespace := s.namespaces[c.namespace]
	name := c.text()
	if namespace == "" {
		return text == name
	}
	slash := len(namespace)
	return len(text) == slash+1+len(name) &&
		text[slash+1:] == name && text[slash] == '/' && text[:slash] == namespace
}

func (s *state) key(c content) Key {
	return Key{
		namespace: s.namespaces[c.namespace],
		name:      c.text(),
	}
}

// Len returns the number of objects after the last Commit. It takes no lock.
func (t *Table) Len() int {
	return int(t.objects.Load())
}

// Snapshot returns the current state, which never changes. It is O(1). Afterwards the writer copies
// each piece of about 4 kB before it changes it.
func (t *Table) Snapshot() *Snapshot {
	s := t.snapshot.Load()
	if s != nil {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshotLocked()
}

// SnapshotWith is Snapshot, and calls read while the visible state is that of the snapshot, so that
// both belong to one point in time. It waits for a write in place.
func (t *Table) SnapshotWith(read func()) *Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	read()
	return t.snapshotLocked()
}

func (t *Table) snapshotLocked() *Snapshot {
	s := t.snapshot.Load()
	if s != nil {
		return s
	}
	t.freeze()
	s = &Snapshot{
		Version: t.version(),
		state:   t.visible.Load(),
		types:   *t.types.all.Load(),
		seed:    t.seed,
	}
	t.snapshot.Store(s)
	return s
}

// freeze ends the epoch: the visible state never changes again. The caller holds mu.
func (t *Table) freeze() {
	s := t.visible.Load()
	if s.epoch == t.epoch {
		t.epoch++
	}
}
