package table

import "slices"

// inPlace is up to how many changes a write makes where readers see them, some 50 us, during
// which they wait. Larger writes are staged, and published by storing one pointer.
const inPlace = 32

// writer is what only the writer needs to know. It is changed in place: a write that has begun
// is always committed.
type writer struct {
	// free are the numbers of free cells.
	free []uint32
	// spaces are the numbers of those in the state; used counts the keys of each, unused the
	// spaces without a key.
	spaces map[string]uint32
	used   []uint32
	unused int
	// peak is the largest number of objects since the table was made or packed.
	peak int
	// origins are those of the objects; they take no memory as long as all are zero.
	origins    perCell[Origin]
	references []references // by index
}

func newWriter(indexes int) writer {
	w := writer{spaces: map[string]uint32{}, used: []uint32{0}}
	for range indexes {
		w.references = append(w.references, newReferences())
	}
	return w
}

// Write is changes that readers see together, at Commit. It belongs to one goroutine.
type Write struct {
	*Table
	s *state
	// staged is true if readers see an older state until Commit.
	staged bool
}

// Begin opens a write of about so many changes, which must be committed. Callers see to it
// that only one is open. Readers may wait for a write of few changes, so nothing slow may
// happen before Commit, and no user code run.
func (t *Table) Begin(changes int) *Write {
	w := &t.open
	*w = Write{Table: t, staged: changes > inPlace}
	if w.staged {
		t.mu.Lock()
		t.freeze()
		t.mu.Unlock()
		w.s = t.state.Load().clone()
		return w
	}
	t.reserve()
	s := t.state.Load()
	if t.frozen.Load() {
		s = s.clone()
	}
	t.mu.Lock()
	for t.frozen.Load() && s == t.state.Load() {
		// A snapshot was taken just now. The state stays frozen, so this happens once.
		t.mu.Unlock()
		s = s.clone()
		t.mu.Lock()
	}
	t.changes.Add(1)
	// No store of what is there already: each takes as long as a lock.
	if t.frozen.Load() {
		t.latest.Store(nil)
		t.state.Store(s)
		t.frozen.Store(false)
	}
	w.s = s
	return w
}

// clone copies a state for changes; its pieces are copied when they are changed.
func (s *state) clone() *state {
	c := *s
	c.keys.segments, c.chunks = s.keys.segments.clone(), s.chunks.clone()
	c.indexes = slices.Clone(s.indexes)
	return &c
}

// reserve makes room in slices, so that nothing large is moved while readers wait.
func (t *Table) reserve() {
	t.free = slices.Grow(t.free, inPlace)
	t.used = slices.Grow(t.used, inPlace)
	s := t.state.Load()
	t.origins.reach(s.cells + inPlace)
	for i := range t.references {
		t.references[i].reserve(s.cells)
	}
	if cap(s.spaces)-len(s.spaces) >= inPlace {
		return
	}
	roomy := *s
	roomy.spaces = slices.Grow(s.spaces, inPlace)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Store(&roomy)
}

// reshape changes a field of the state that readers load without a lock: they get another one.
func (w *Write) reshape(change func(*state)) {
	if w.staged {
		change(w.s)
		return
	}
	s := *w.s
	change(&s)
	w.s = &s
	w.state.Store(w.s)
}

// Commit publishes the write, and calls also, which may change what label returns, while
// nobody reads.
func (w *Write) Commit(also func()) {
	if w.staged {
		w.mu.Lock()
		w.latest.Store(nil)
		w.changes.Add(1)
		w.state.Store(w.s)
		w.frozen.Store(false)
	}
	if also != nil {
		also()
	}
	w.changes.Add(1)
	w.mu.Unlock()
	w.s = nil
}

// Len is how many objects there are in the write.
func (w *Write) Len() int { return w.s.len }

// Place is where the look-up of a key ends or, once the table has changed, begins again.
type Place struct{ hash, number uint32 }

// Slot is the entry of a key, if there is one, as a write needs it.
type Slot struct {
	Found
	Origin Origin
	Exists bool
	// Several is how many values the entry has, in all indexes in which it has several.
	Several int
	hash    uint32
}

// Seek begins a look-up, which Find ends. Of several keys all are best begun before the first is found: the
// processor waits for their memory together then. Only the goroutine that may write may call either.
func (t *Table) Seek(key Key) Place {
	p := Place{hash: key.hash(t.seed)}
	t.current().keys.find(p.hash, func(candidate uint32) bool {
		p.number = candidate
		return true
	})
	return p
}

// Find returns the slot of a key that was sought, whatever has changed since. It is true until the next change.
func (t *Table) Find(key Key, p Place) Slot {
	s, slot := t.current(), Slot{hash: p.hash}
	c := s.read(p.number)
	if slot.Number, slot.Exists = p.number, s.isKey(c, key); !slot.Exists {
		if slot.Number, c, slot.Exists = s.find(key, p.hash, nil); !slot.Exists {
			return slot
		}
	}
	slot.Found, slot.Origin = t.found(slot.Number, c), t.origins.of(slot.Number)
	for i := range t.references {
		if refs := &t.references[i]; refs.of(slot.Number).record == several {
			slot.Several += len(refs.several[slot.Number])
		}
	}
	return slot
}

// Put stores an object under a key, whose slot was just found, with its origin and its values in each
// index, which must not repeat. It keeps neither the values nor their texts. It returns the number.
func (w *Write) Put(key Key, at Slot, obj any, origin Origin, values [][]string) (number uint32) {
	var space uint32
	if number = at.Number; at.Exists {
		space = w.s.read(number).space
	} else {
		number, space = w.add(at.hash), w.useSpace(key)
	}
	id, value := w.types.store(obj)
	// The name may be part of the object, and the old one would keep the old object alive.
	length, name := splitName(key.name)
	w.set(number, cell{value, name, uint32(id) | length<<8, space})
	if origin != at.Origin {
		w.origins.set(number, origin)
	}
	for at := range w.s.indexes {
		w.Index(at, number, values[at])
	}
	return number
}

// Remove removes the entry of a slot that was just found.
func (w *Write) Remove(at Slot) {
	number := at.Number
	for at := range w.s.indexes {
		w.Index(at, number, nil)
	}
	space := w.s.read(number).space
	w.s.keys.remove(at.hash, number, w.epoch)
	w.set(number, cell{})
	if at.Origin != (Origin{}) {
		w.origins.set(number, Origin{})
	}
	for _, l := range w.listings {
		l.marks.set(number, false)
	}
	w.free = append(w.free, number)
	w.s.len--
	if space != 0 {
		if w.used[space]--; w.used[space] == 0 {
			w.unused++
		}
	}
}

// Each calls f with each entry of the write.
func (w *Write) Each(f func(number uint32, key Key, found Found)) {
	w.s.each(func(number uint32, c cell, key Key) { f(number, key, w.found(number, c)) })
}

// AddIndexes adds indexes without values, after the others. The write must be staged.
func (w *Write) AddIndexes(more int) {
	for range more {
		w.s.indexes = append(w.s.indexes, newIndex(w.epoch, w.seed))
		w.references = append(w.references, newReferences())
	}
}

// add makes a cell for a new key.
func (w *Write) add(hash uint32) (number uint32) {
	if last := len(w.free) - 1; last >= 0 {
		number = w.free[last]
		w.free = w.free[:last]
	} else {
		number = w.s.cells
		w.s.cells++
	}
	for !w.s.keys.put(hash, number, w.epoch) {
		w.reshape(func(s *state) { s.keys.double(w.epoch) })
	}
	w.s.len++
	w.peak = max(w.peak, w.s.len)
	return number
}

func (w *Write) set(number uint32, to cell) {
	at := number / chunkLen
	if !w.s.chunks.has(at) {
		w.reshape(func(s *state) { s.chunks.reach(at, w.epoch) })
	}
	w.s.chunks.own(at, w.epoch)[number%chunkLen].store(to)
}

// useSpace is the number of a key's first part, which gets one more key.
func (w *Write) useSpace(key Key) uint32 {
	if key.space == "" {
		return 0
	}
	number, known := w.spaces[key.space]
	if !known {
		number = uint32(len(w.s.spaces))
		space := key.space + "/" // a copy: it may be part of an object
		w.spaces[space[:len(key.space)]] = number
		w.used = append(w.used, 0)
		w.reshape(func(s *state) { s.spaces = append(s.spaces, space) })
	} else if w.used[number] == 0 {
		w.unused--
	}
	w.used[number]++
	return number
}

// minPacked is from how many on it is worth the work to release memory.
const minPacked = 1024

// Pack rebuilds the table if most of its memory is free. Three quarters and more have been
// removed since it was built, so the cost is constant for each removal. Readers are not
// blocked. No write may be open.
func (t *Table) Pack() {
	if t.IsSparse() {
		t.Begin(inPlace + 1).pack()
	}
}

// IsSparse reports whether Pack would do anything. Only the goroutine that may write may call it.
func (t *Table) IsSparse() bool {
	live := t.state.Load().len
	if sparse(live, t.peak) || t.unused > minPacked && t.unused > max(len(t.spaces), live)/2 {
		return true
	}
	return slices.ContainsFunc(t.references, func(refs references) bool {
		made := int(refs.records)
		return made > live/2 && sparse(made-len(refs.free), made)
	})
}

func sparse(used, made int) bool { return made > minPacked && used < made/4 }

// pack puts everything into a new state.
func (w *Write) pack() {
	old, before := w.s, w.Table.writer
	w.Table.writer = newWriter(len(before.references))
	w.s = w.newState(len(before.references))
	marks := make([]bitmap, len(w.listings))
	values := make([][]string, len(before.references))
	old.each(func(from uint32, c cell, key Key) {
		for at := range before.references {
			values[at] = values[at][:0]
			for _, one := range before.references[at].all(from) {
				values[at] = append(values[at], old.indexes[at].record(one.record).text)
			}
		}
		slot := Slot{hash: key.hash(w.seed)}
		to := w.Put(key, slot, w.types.load(c.typ(), c.value), before.origins.of(from), values)
		for i, l := range w.listings {
			marks[i].set(to, l.marks.get(from))
		}
	})
	for i, l := range w.listings {
		l.marks = marks[i]
	}
	w.Commit(nil)
}
