package table

import (
	"slices"
	"strings"
)

// InPlace is the maximum number of changes that a write makes in the visible state. Readers wait
// for it, some 50 us. Larger writes are staged, and published by storing one pointer.
const InPlace = 32

// Weight returns the number of changes to pass to Begin for one that sets an entry's values: to add
// or remove several values takes as long as several changes.
func (t *Table) Weight(p Place, values [][]string) int {
	n := 1
	for _, texts := range values {
		n += max(0, len(texts)-1)
	}
	return n + t.references.countMultiple(p.number)
}

// Begin opens a write of about that many changes, which readers see together at Commit. The caller
// ensures that only one is open. Readers may wait for a write of few changes, so nothing slow and
// no user code may run before Commit.
func (t *Table) Begin(changes int) {
	// Slices that a write in place appends to must not be reallocated while readers wait.
	namespaces := t.state.namespaces
	free := cap(namespaces) - len(namespaces)
	t.staged = changes > InPlace || free < InPlace
	t.mu.Lock()
	if t.staged {
		t.freeze()
		t.mu.Unlock()
		t.state = t.state.clone(t.epoch)
		t.state.namespaces = slices.Grow(t.state.namespaces, InPlace)
		return
	}
	t.changes.Add(1)
	// Avoid storing unchanged values: each atomic store takes as long as a lock.
	if t.state.epoch != t.epoch {
		t.state = t.state.clone(t.epoch)
		t.snapshot.Store(nil)
		t.visible.Store(t.state)
	}
}

// BeginStaged is Begin for a write that is staged, however few changes it has.
func (t *Table) BeginStaged() {
	t.Begin(InPlace + 1)
}

// clone copies a state for changes. Its pieces are copied when they are changed.
func (s *state) clone(epoch uint64) *state {
	c := *s
	c.epoch = epoch
	c.keys.segments = s.keys.segments.clone()
	c.chunks = s.chunks.clone()
	c.indexes = slices.Clone(s.indexes)
	return &c
}

// changeState changes a field that readers load without a lock, in a copy of the state.
func (t *Table) changeState(change func(*state)) {
	s := *t.state
	change(&s)
	t.state = &s
	if !t.staged {
		t.visible.Store(t.state)
	}
}

// minFree is the number of free entries from which releasing their memory is worth the work.
const minFree = 1024

// Commit publishes the write. While readers are locked out it calls setVersion, if not nil, which
// may change the version. Then, if more of the table is free than in use, it rebuilds the table.
// The cost per removal is constant.
func (t *Table) Commit(setVersion func()) {
	if t.staged {
		t.mu.Lock()
		t.snapshot.Store(nil)
		t.changes.Add(1)
		t.visible.Store(t.state)
	}
	objects := int64(t.state.len)
	if t.objects.Load() != objects {
		t.objects.Store(objects)
	}
	if setVersion != nil {
		setVersion()
	}
	t.changes.Add(1)
	t.mu.Unlock()

	removed := t.removed
	t.removed = false
	if removed && t.free() > max(minFree, t.state.len) {
		t.pack()
	}
}

// free returns the number of free entries: cells, namespaces and values of indexes.
func (t *Table) free() int {
	s := t.state
	cells := int(s.cells) - s.len
	namespaces := max(0, len(s.namespaces)-s.len)
	values := 0
	for _, i := range s.indexes {
		values += int(i.allocated) - i.len
	}
	return cells + namespaces + values
}

// pack moves everything into a new state. Readers are not blocked. No write may be open.
func (t *Table) pack() {
	t.BeginStaged()
	old := t.state
	references := t.references
	t.reset(references.indexes)
	listings := t.listings
	t.listings = nil // the entries are not new to them
	marks := make([]perCell[mark], len(listings))
	values := make([][]string, references.indexes)
	for from := range old.cells {
		c := old.cell(from)
		if c.content.isFree() {
			continue
		}
		for at, i := range old.indexes {
			refs := references.of(from, at)
			values[at] = i.appendTexts(values[at][:0], refs)
		}
		key := old.key(c.content)
		obj := t.object(c.content)
		absent := Slot{hash: key.hash(t.seed)}
		to := t.Put(key, absent, obj, c.origin(), values)
		for i, l := range listings {
			marks[i].set(to, l.marks.get(from))
		}
	}
	for i, l := range listings {
		l.marks = marks[i]
	}
	t.listings = listings
	t.Commit(nil)
}

// Place is the result of Seek, from which Find continues, even if the table has changed since.
type Place struct {
	hash   uint32
	number uint32
}

// Slot is the entry of a key, if there is one, for a write.
type Slot struct {
	Object any
	Origin Origin
	Exists bool
	// Number is that of the entry's cell, until the entry is removed or the table is packed.
	Number uint32
	hash   uint32
}

// Seek begins a look-up that Find completes. For several keys, call Seek for all before the first
// Find: then the processor waits for their memory together. Only the goroutine that may write may
// call either.
func (t *Table) Seek(key Key) Place {
	hash := key.hash(t.seed)
	number, _ := t.state.keys.first(hash)
	return Place{hash: hash, number: number}
}

// Find returns the slot of a key, even if the table has changed since Seek. It is valid until the
// next change.
func (t *Table) Find(key Key, p Place) Slot {
	number := p.number
	c := t.state.cell(number)
	if c == nil || !t.state.isKey(c.content, key) {
		found, exists := t.state.find(key, p.hash)
		if !exists {
			return Slot{hash: p.hash}
		}
		number = found
		c = t.state.cell(number)
	}
	return Slot{
		Object: t.object(c.content),
		Origin: c.origin(),
		Exists: true,
		Number: number,
		hash:   p.hash,
	}
}

// Put stores an object, which must not be nil, under a key whose slot was just found, with its
// origin and its values in each index, which are sorted and do not repeat. It retains neither the
// values nor their texts. It returns the entry's number.
func (t *Table) Put(
	key Key, at Slot, obj any, origin Origin, values [][]string,
) (number uint32) {
	keySum := key.checksum()
	if at.Exists {
		number = at.Number
		t.state.sum ^= at.Origin.checksum(keySum)
	} else {
		number = t.add(at.hash)
		for _, l := range t.listings {
			l.entryAdded(number)
		}
	}
	t.state.sum ^= origin.checksum(keySum)

	c := t.writable(number)
	namespace := c.content.namespace
	if !at.Exists {
		namespace = t.namespaceNumber(key.namespace)
	}
	// Always store the new name: the old one may be part of the old object and would keep it alive.
	to := t.types.content(obj, key.name, namespace, origin.long)
	c.store(to, origin)
	for at := range t.state.indexes {
		t.Index(at, number, values[at])
	}
	return number
}

// writable returns a cell that may be changed.
func (t *Table) writable(number uint32) *cell {
	return &t.state.chunks.writable(number/chunkLen, t.epoch)[number%chunkLen]
}

// Remove removes the entry of a slot that was just found.
func (t *Table) Remove(at Slot) {
	for i := range t.state.indexes {
		t.Index(i, at.Number, nil)
	}
	c := t.writable(at.Number)
	key := t.state.key(c.content)
	t.state.sum ^= at.Origin.checksum(key.checksum())
	t.state.keys.remove(at.hash, at.Number, t.epoch)
	c.store(content{namespace: t.state.free}, Origin{})
	t.state.free = at.Number + 1
	t.state.len--
	t.removed = true
	for _, l := range t.listings {
		l.entryRemoved(at)
	}
}

// AddIndexes adds indexes after the others, with valuesOf each object. The write must be staged.
func (t *Table) AddIndexes(more int, valuesOf func(obj any) [][]string) {
	first := t.references.indexes
	for range more {
		added := newIndex(t.epoch, t.seed)
		t.state.indexes = append(t.state.indexes, added)
		t.references.grow()
	}
	for number := range t.state.cells {
		c := t.state.cell(number).content
		if c.isFree() {
			continue
		}
		obj := t.object(c)
		for i, values := range valuesOf(obj) {
			t.Index(first+i, number, values)
		}
	}
}

// add returns a cell for a new key.
func (t *Table) add(hash uint32) (number uint32) {
	if t.state.free > 0 {
		number = t.state.free - 1
		c := t.state.cell(number)
		t.state.free = c.content.namespace
	} else {
		number = t.state.cells
		t.state.cells++
		chunk := number / chunkLen
		page := int(chunk / pageLen)
		if page >= len(t.state.chunks.pages) {
			t.changeState(func(s *state) {
				s.chunks.grow(chunk, t.epoch)
			})
		}
	}
	for !t.state.keys.put(hash, number, t.epoch) {
		t.changeState(func(s *state) {
			s.keys.double()
		})
	}
	t.state.len++
	return number
}

// namespaceNumber returns the number of a namespace.
func (t *Table) namespaceNumber(namespace string) uint32 {
	number, known := t.namespaces[namespace]
	if known {
		return number
	}
	number = uint32(len(t.state.namespaces))
	own := strings.Clone(namespace) // it may be part of an object
	t.namespaces[own] = number
	t.changeState(func(s *state) {
		s.namespaces = append(s.namespaces, own)
	})
	return number
}
