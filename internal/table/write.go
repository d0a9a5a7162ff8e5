package table

import "slices"

// inPlace is the maximum number of changes that a write makes in the visible state. Readers wait for it, some 50 us.
// Larger writes are staged, and published by storing one pointer.
const inPlace = 32

// Begin opens a write of about that many changes, which readers see together at Commit. The caller ensures that only
// one is open. Readers may wait for a write of few changes, so nothing slow and no user code may run before Commit.
func (t *Table) Begin(changes int) {
	// Slices that a write in place appends to must not be reallocated while readers wait.
	t.staged = changes > inPlace || cap(t.s.spaces)-len(t.s.spaces) < inPlace
	t.mu.Lock()
	if t.staged {
		t.freeze()
		t.mu.Unlock()
		t.s = t.s.clone()
		t.s.spaces = slices.Grow(t.s.spaces, inPlace)
		return
	}
	t.changes.Add(1)
	// Avoid storing unchanged values: each atomic store takes as long as a lock.
	if t.frozen {
		t.s = t.s.clone()
		t.latest.Store(nil)
		t.state.Store(t.s)
		t.frozen = false
	}
}

// clone copies a state for changes. Its pieces are copied when they are changed.
func (s *state) clone() *state {
	c := *s
	c.keys.segments, c.chunks = s.keys.segments.clone(), s.chunks.clone()
	c.indexes = slices.Clone(s.indexes)
	return &c
}

// reshape changes a field of the state that readers load without a lock, in a new state.
func (t *Table) reshape(change func(*state)) {
	s := *t.s
	change(&s)
	if t.s = &s; !t.staged {
		t.state.Store(t.s)
	}
}

// minFree is the number of free entries from which releasing their memory is worth the work.
const minFree = 1024

// Commit publishes the write. While readers are locked out it calls the function also, which may change label's result.
// Then, if more of the table is free than in use, it rebuilds the table. Removals have made that space free, so the
// cost per removal is constant.
func (t *Table) Commit(also func()) {
	if t.staged {
		t.mu.Lock()
		t.latest.Store(nil)
		t.changes.Add(1)
		t.state.Store(t.s)
		t.frozen = false
	}
	t.checksum.Store(t.sum)
	t.objects.Store(int64(t.s.len))
	if also != nil {
		also()
	}
	t.changes.Add(1)
	t.mu.Unlock()
	t.staged = false
	free := int(t.s.cells) - t.s.len + max(0, len(t.s.spaces)-t.s.len)
	for _, i := range t.s.indexes {
		free += int(i.made) - i.len
	}
	if free > max(minFree, t.s.len) {
		t.pack()
	}
}

// pack moves everything into a new state. Readers are not blocked. No write may be open.
func (t *Table) pack() {
	t.Begin(inPlace + 1)
	old, references := t.s, t.references
	t.reset(len(references))
	marks := make([]perCell[bool], len(t.listings))
	values := make([][]string, len(references))
	for from := range old.cells {
		c := old.cell(from)
		if c.kind == 0 {
			continue
		}
		for at, i := range old.indexes {
			values[at] = values[at][:0]
			for _, record := range references[at].of(from, nil) {
				values[at] = append(values[at], i.record(record).text)
			}
		}
		key := old.key(c)
		to := t.Put(key, Slot{hash: key.hash(t.seed)}, t.object(c), c.origin, values)
		for i, l := range t.listings {
			marks[i].set(to, l.marks.get(from))
		}
	}
	for i, l := range t.listings {
		l.marks = marks[i]
	}
	t.Commit(nil)
}

// Place is the result of Seek, from which Find continues, even if the table has changed since.
type Place struct{ hash, number uint32 }

// Slot is the entry of a key, if there is one, for a write.
type Slot struct {
	Object any
	Origin Origin
	Exists bool
	// Number is that of the entry's cell, until the entry is removed or the table is packed.
	Number uint32
	hash   uint32
}

// Seek begins a look-up that Find completes. For several keys, call Seek for all before the first Find: then the
// processor waits for their memory together. Only the goroutine that may write may call either.
func (t *Table) Seek(key Key) Place {
	p := Place{hash: key.hash(t.seed)}
	p.number, _ = t.s.keys.first(p.hash)
	return p
}

// Find returns the slot of a key, even if the table has changed since Seek. It is valid until the next change.
func (t *Table) Find(key Key, p Place) Slot {
	number, c := p.number, t.s.cell(p.number)
	if c == nil || !t.s.isKey(c, key) {
		var exists bool
		if number, exists = t.s.find(key, p.hash); !exists {
			return Slot{hash: p.hash}
		}
		c = t.s.cell(number)
	}
	return Slot{t.object(c), c.origin, true, number, p.hash}
}

// Several returns the number of values of the entry at a place, over all indexes in which it has several.
func (t *Table) Several(p Place) (n int) {
	for i := range t.references {
		n += len(t.references[i].several[p.number])
	}
	return n
}

// Put stores an object, which must not be nil, under a key whose slot was just found, with its origin and its values in
// each index, which must not repeat. It retains neither the values nor their texts. It returns the entry's number.
func (t *Table) Put(key Key, at Slot, obj any, origin Origin, values [][]string) (number uint32) {
	// Always store the new name: the old one may be part of the old object and would keep it alive.
	c := t.types.cell(obj, key.name)
	c.origin = origin
	sum := key.checksum()
	t.sum ^= origin.checksum(sum)
	if number = at.Number; at.Exists {
		t.sum ^= at.Origin.checksum(sum)
		c.space = t.s.cell(number).space
	} else {
		number, c.space = t.add(at.hash), t.numberOf(key.space)
	}
	t.set(number, c)
	for at := range t.s.indexes {
		t.Index(at, number, values[at])
	}
	return number
}

// Remove removes the entry of a slot that was just found.
func (t *Table) Remove(at Slot) {
	for i := range t.s.indexes {
		t.Index(i, at.Number, nil)
	}
	t.sum ^= at.Origin.checksum(t.s.key(t.s.cell(at.Number)).checksum())
	t.s.keys.remove(at.hash, at.Number, t.epoch)
	t.set(at.Number, cell{space: t.s.free})
	t.s.free = at.Number + 1
	t.s.len--
	for _, l := range t.listings {
		l.marks.set(at.Number, false)
	}
}

// AddIndexes adds empty indexes after the others. The write must be staged.
func (t *Table) AddIndexes(more int) {
	for range more {
		t.s.indexes = append(t.s.indexes, newIndex(t.epoch, t.seed))
		t.references = append(t.references, references{})
	}
}

// add returns a cell for a new key.
func (t *Table) add(hash uint32) (number uint32) {
	if t.s.free > 0 {
		number = t.s.free - 1
		t.s.free = t.s.cell(number).space
	} else {
		number = t.s.cells
		t.s.cells++
	}
	for !t.s.keys.put(hash, number, t.epoch) {
		t.reshape(func(s *state) { s.keys.double(t.epoch) })
	}
	t.s.len++
	return number
}

func (t *Table) set(number uint32, to cell) {
	at := number / chunkLen
	if int(at/pageLen) >= len(t.s.chunks.pages) {
		t.reshape(func(s *state) { s.chunks.reach(at, t.epoch) })
	}
	t.s.chunks.own(at, t.epoch)[number%chunkLen].store(to)
}

// numberOf returns the number of a key's first part.
func (t *Table) numberOf(space string) uint32 {
	number, known := t.spaces[space]
	if !known {
		number = uint32(len(t.s.spaces))
		text := space + "/" // a copy: space may be part of an object
		t.spaces[text[:len(space)]] = number
		t.reshape(func(s *state) { s.spaces = append(s.spaces, text) })
	}
	return number
}
