package table

import "sync/atomic"

// To find an object is a chain of reads each of which waits for memory, a tenth of a
// microsecond in a large table. What is here looks for several at once, so that they wait
// together.

// atOnce is for up to how many keys that is done at once.
const atOnce = inPlace

// GetAll puts what is under each of the keys into found, of the same length: with no object
// where there is none. It takes no lock, as Get. What it finds is not of one state.
func (t *Table) GetAll(keys []Key, found []Found) {
	for len(keys) > atOnce {
		t.GetAll(keys[:atOnce], found[:atOnce])
		keys, found = keys[atOnce:], found[atOnce:]
	}
	var hashes [atOnce]uint64
	s := t.state.Load()
	for i := range keys {
		hashes[i] = keys[i].hash(t.seed)
	}
	touched := s.touch(hashes[:len(keys)])
	for i, key := range keys {
		in, number, c := t.first(hashes[i])
		if in == nil || !in.hasKey(c, key) {
			found[i], _ = t.get(key, hashes[i])
			continue
		}
		found[i] = t.found(number, c)
	}
	t.touched.Store(touched) // so that nobody finds out that it is for nothing
}

// touch reads what leads to the cells of some hashes. One step is made for all before the next
// one: the processor waits for as many reads at once as there are within some hundred
// instructions. Nobody compares names afterwards, as a rule, so none is read.
func (s *state) touch(hashes []uint64) (touched uint64) {
	var (
		groups  [atOnce]*group
		numbers [atOnce]uint32
		cells   [atOnce]*slot
	)
	for i, hash := range hashes {
		groups[i] = &s.segment(hash).groups[home(hash)]
	}
	for _, g := range groups[:len(hashes)] {
		touched += g.tags[0].Load()
	}
	for i, g := range groups[:len(hashes)] {
		numbers[i] = NoNumber
		if matches := g.having(tagOf(hashes[i]) * low); matches != 0 {
			numbers[i] = atomic.LoadUint32(&g.numbers[slotOf(matches)])
		}
	}
	for i, number := range numbers[:len(hashes)] {
		if chunk, at := s.chunk(number), number%chunkLen; chunk != nil && at < cellsInChunk {
			cells[i] = &chunk.cells[at]
		}
	}
	for _, c := range cells[:len(hashes)] {
		if c != nil {
			touched += c.head.Load()
		}
	}
	return touched
}

// Warm looks at what only the writer has of some cells that GetAll has found.
func (w *Write) Warm(found []Found) {
	touched := uint32(0)
	for at := range w.references {
		for i := range found {
			touched += w.references[at].of(found[i].Number).record
		}
	}
	w.warmed += touched
}
