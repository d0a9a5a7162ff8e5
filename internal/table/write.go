package table

import "slices"

// inPlace is up to how many changes are made where readers see them: some 50 us, during
// which they wait. What is more is made aside, and shown with one store of a pointer.
const inPlace = 32

// writer is what only who writes needs to know. It is changed where it stands: a write that
// has begun is always finished.
type writer struct {
	// free are the numbers of cells that hold nothing.
	free []uint32
	// spaces are the numbers of those in the state; used counts the keys of each.
	spaces map[string]uint32
	used   []uint32
	unused int
	// mostSpaces is up to how many have a number.
	mostSpaces int
	// peak is the largest number of objects since the table was made or packed.
	peak int
	// references say of each cell where it stands in the indexes.
	references []references
	origins    origins
}

func newWriter(indexes int) writer {
	w := writer{spaces: map[string]uint32{}, used: []uint32{0}, mostSpaces: noSpace}
	for range indexes {
		w.references = append(w.references, newReferences())
	}
	return w
}

// Write is changes that readers see at once, at Commit. It belongs to one goroutine.
type Write struct {
	*Table
	s *state
	// aside is true if readers see an older state until Commit.
	aside bool
	// removed is true if it has made a number that of another cell, or of none.
	removed bool
	// warmed is what Warm has added up.
	warmed uint32
	// hash is that of the key that was hashed last.
	hashed Key
	hash   uint64
}

// Begin begins a write of about so many changes, which must be committed. Only one may be
// under way: the caller sees to that. Readers may have to wait if it is of few changes, so
// nothing that takes its time may happen before Commit: let the number be large then.
func (t *Table) Begin(changes int) *Write {
	w := &t.open
	*w = Write{Table: t, aside: changes > inPlace}
	if w.aside {
		t.mu.Lock()
		t.freeze()
		t.mu.Unlock()
		w.s = t.state.Load().clone()
		w.s.short = w.s.newShortcuts(len(w.s.short.chunks))
		return w
	}
	t.reserve()
	w.s = t.state.Load()
	if t.frozen.Load() {
		w.s = w.s.clone()
	}
	t.mu.Lock()
	for t.frozen.Load() && w.s == t.state.Load() {
		// Somebody has taken a snapshot just now. It stays frozen, so that this is so once.
		t.mu.Unlock()
		w.s = w.s.clone()
		t.mu.Lock()
	}
	t.changes.Add(1)
	// Each store is for all processors to see, and takes as long as a lock: so there is none of
	// what is there already. Nobody has a snapshot of what is not frozen.
	if t.frozen.Load() {
		t.latest.Store(nil)
		t.state.Store(w.s)
		t.frozen.Store(false)
	}
	return w
}

// reserve makes room in what is one piece of memory, so that nothing is moved while readers
// wait.
func (t *Table) reserve() {
	t.free = slices.Grow(t.free, inPlace)
	t.used = slices.Grow(t.used, inPlace)
	for i := range t.references {
		t.references[i].reserve(t.state.Load().cells)
	}
	s := t.state.Load()
	short := s.withRoom(s.cells + inPlace + 1)
	if cap(s.spaces)-len(s.spaces) >= inPlace && short == s.short {
		return
	}
	// A reader has one or the other: they say the same.
	roomy := *s
	roomy.spaces, roomy.short = slices.Grow(s.spaces, inPlace), short
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state.Store(&roomy)
}

// Commit shows the write to readers, and calls also, which may change what label returns,
// while nobody reads.
func (w *Write) Commit(also func()) {
	if w.aside {
		w.mu.Lock()
		w.latest.Store(nil)
		w.changes.Add(1)
		w.state.Store(w.s)
		if w.removed {
			w.renumbered.Add(1) // again: who has looked since may have read the state before
		}
		w.frozen.Store(false)
	}
	if also != nil {
		also()
	}
	w.changes.Add(1)
	w.mu.Unlock()
	w.s, w.hashed, w.hash = nil, Key{}, 0
}

// Find returns what is under a key as the write has left it.
func (w *Write) Find(key Key) (Found, bool) {
	number, c, ok := w.find(key, w.hashOnce(key))
	if !ok {
		return Found{}, false
	}
	return w.found(number, c), true
}

// hashOnce is the hash of a key, which is most often the one that was asked for last: who
// puts an object has looked first at what is there.
func (w *Write) hashOnce(key Key) uint64 {
	if w.hash == 0 || w.hashed != key {
		w.hashed, w.hash = key, key.hash(w.seed)
	}
	return w.hash
}

// find finds the cell of a key. If there is none, but one of another key with the same hash,
// c is alike.
func (w *Write) find(key Key, hash uint64) (number uint32, c cell, ok bool) {
	twins := head(0)
	var search search
	search.begin(w.s.segment(hash), hash)
	for place := search.next(); place >= 0; place = search.next() {
		number = search.segment.number(place)
		if c, ok = w.s.read(number); ok && c.hasHash(hash) {
			if w.s.isKey(c, key) {
				return number, c, true
			}
			twins = alikeBit
		}
	}
	return 0, cell{head: twins}, false
}

// makeAlike notes of all cells with a hash that it does not say which of them it is.
func (w *Write) makeAlike(hash uint64) {
	var search search
	search.begin(w.s.segment(hash), hash)
	for place := search.next(); place >= 0; place = search.next() {
		number := search.segment.number(place)
		if c, ok := w.s.read(number); ok && c.hasHash(hash) {
			c.head |= alikeBit
			w.set(number, c)
		}
	}
}

// Put puts an object under a key, with its values in each index, which must not repeat;
// neither they nor their texts are kept. It returns what was there; the number is that of the
// cell in any case.
func (w *Write) Put(key Key, obj any, mark uint32, values [][]string) (old Found, existed bool) {
	return w.put(key, w.hashOnce(key), obj, mark, values)
}

func (w *Write) put(key Key, hash uint64, obj any, mark uint32, values [][]string) (old Found, existed bool) {
	number, c, existed := w.find(key, hash)
	if existed {
		return w.replace(number, c, key, obj, mark, values), true
	}
	return Found{Number: w.putNew(key, hash, c.head&alikeBit, obj, mark, values)}, false
}

// Add is Put for a key under which there is nothing. It is false, and has done nothing, where
// there is something.
func (w *Write) Add(key Key, obj any, mark uint32, values [][]string) bool {
	hash := w.hashOnce(key)
	_, c, exists := w.find(key, hash)
	if exists {
		return false
	}
	w.putNew(key, hash, c.head&alikeBit, obj, mark, values)
	return true
}

// putNew puts an object under a key under which there is nothing, and says in which cell.
func (w *Write) putNew(key Key, hash uint64, alike head, obj any, mark uint32, values [][]string) (number uint32) {
	if alike != 0 {
		w.makeAlike(hash)
	}
	number, space := w.add(key, hash), w.spaceOf(key)
	typ, value := w.types.store(obj)
	name, length := storeName(key, space)
	w.set(number, cell{value, name, newHead(typ, length, space, hash) | textBitOf(key) | alike, newTail(mark, hash)})
	w.reindexAll(number, values)
	return number
}

func (w *Write) reindexAll(number uint32, values [][]string) {
	for at := range w.s.indexes {
		w.reindex(at, number, values[at])
	}
}

// Remove takes out what is under a key, and returns it.
func (w *Write) Remove(key Key) (old Found, existed bool) {
	hash := w.hashOnce(key)
	number, c, existed := w.find(key, hash)
	if !existed {
		return old, false
	}
	old = w.found(number, c)
	w.removeCell(number, &c, hash)
	return old, true
}

func (w *Write) removeCell(number uint32, c *cell, hash uint64) {
	for at := range w.s.indexes {
		w.reindex(at, number, nil)
	}
	e := editor{w.s.keys, w.epoch, w, w.s.short}
	e.remove(hash, number)
	w.setKeys(e.directory)
	w.set(number, cell{})
	w.free = append(w.free, number)
	if int(number) < len(w.origins) {
		w.origins[number] = Origin{}
	}
	w.renumbered.Add(1)
	w.removed = true
	w.s.len--
	w.leaveSpace(c.head.space())
}

// KeepOnly removes the objects that are not to be kept.
func (w *Write) KeepOnly(keep func(number uint32, key Key) bool) {
	for number := range w.s.cells {
		c, exists := w.s.read(number)
		if !exists {
			continue
		}
		if key := w.s.key(&c); !keep(number, key) {
			w.removeCell(number, &c, key.hash(w.seed))
		}
	}
}

// add makes a cell for a key, which is to be set.
func (w *Write) add(key Key, hash uint64) (number uint32) {
	if last := len(w.free) - 1; last >= 0 {
		number = w.free[last]
		w.free = w.free[:last]
	} else {
		if w.s.cells%chunkLen == cellsInChunk {
			w.s.cells++ // the number of no cell
		}
		number = w.s.cells
		w.s.cells++
	}
	e := editor{w.s.keys, w.epoch, w, w.s.short}
	e.put(hash, number)
	w.setKeys(e.directory)
	w.s.len++
	w.peak = max(w.peak, w.s.len)
	return number
}

func (w *Write) setKeys(keys *directory) {
	if keys != w.s.keys {
		w.reshape(func(s *state) { s.keys = keys })
	}
}

func (w *Write) hashOf(number uint32, tag uint64) uint64 {
	c, _ := w.s.read(number)
	return c.hash(tag)
}

// set writes a cell.
func (w *Write) set(number uint32, to cell) {
	p, at := w.ownChunk(number)
	c := p.chunks[at].Load()
	c.write(number, to)
	if id := to.head.typ(); id != noType && id != p.kinds[at] {
		p.kinds[at] = c.commonType()
	}
}

// AddIndexes adds indexes without values, after the others. The write must be of many
// changes.
func (w *Write) AddIndexes(more int) {
	for range more {
		w.s.indexes = append(w.s.indexes, newIndex(w.epoch, w.seed))
		w.references = append(w.references, newReferences())
	}
}

// Len is how many objects there are as the write has left them.
func (w *Write) Len() int { return w.s.len }

// Each calls f with the number, the key and the object of each cell.
func (w *Write) Each(f func(number uint32, key Key, found Found)) {
	for number := range w.s.cells {
		if c, exists := w.s.read(number); exists {
			f(number, w.s.key(&c), w.found(number, c))
		}
	}
}

// Index makes values those of a cell in one of the indexes.
func (w *Write) Index(index int, number uint32, values []string) { w.reindex(index, number, values) }
