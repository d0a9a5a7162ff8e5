package table

import (
	"hash/maphash"
	"slices"
	"strings"
)

// index finds the cells that have a value.
//
//	text of a value ──directory──▶ record: its text and its postings, the numbers of the cells
//	cell ──reference──▶ the record, and the place in its postings (only the writer uses it)
//
// A posting is removed by putting the last one in its place, so that takes no longer the more
// there are. Only snapshots and the writer read an index.
type index struct {
	epoch uint64
	seed  maphash.Seed
	// values finds records, whose numbers begin with 1.
	values directory
	chunks cowList[recordChunk]
	// len is how many values at least one object has.
	len int
}

// recordChunkLen is how many records are copied together: with 8 bytes of the allocator they
// are 2 kB, and each is one cache line.
const recordChunkLen = 31

type recordChunk struct {
	_       [7]uint64
	records [recordChunkLen]record
}

// record is a value and the cells that have it, in 64 bytes.
type record struct {
	text     string
	postings postings
}

func newIndex(epoch uint64, seed maphash.Seed) *index {
	return &index{epoch: epoch, seed: seed, values: newDirectory(epoch)}
}

func (i *index) hash(text string) uint32 { return hashOf(maphash.String(i.seed, text)) }

func (i *index) record(number uint32) *record {
	return &i.chunks.get(number / recordChunkLen).records[number%recordChunkLen]
}

func (i *index) find(text string, hash uint32) (number uint32, found bool) {
	found = i.values.find(hash, func(candidate uint32) bool {
		number = candidate
		return i.record(candidate).text == text
	})
	return number, found
}

// each calls yield with each record that has postings.
func (i *index) each(yield func(*record) bool) {
	for at := uint32(0); i.chunks.has(at) && i.chunks.get(at) != nil; at++ {
		records := &i.chunks.get(at).records
		for k := range records {
			if r := &records[k]; r.postings.len > 0 && !yield(r) {
				return
			}
		}
	}
}

// own returns a record for changes, a new one if there is none.
func (i *index) own(number uint32) *record {
	at := number / recordChunkLen
	i.chunks.reach(at, i.epoch)
	return &i.chunks.own(at, i.epoch).records[number%recordChunkLen]
}

// ownIndex returns an index of the write for changes.
func (w *Write) ownIndex(at int) *index {
	i := w.s.indexes[at]
	if i.epoch != w.epoch {
		copied := *i
		copied.epoch = w.epoch
		copied.values.segments, copied.chunks = i.values.segments.clone(), i.chunks.clone()
		i = &copied
		w.s.indexes[at] = i
	}
	return i
}

// postings are the numbers of the cells that have a value, unordered: in a slice while they are
// few, then in blocks, so that a change copies a block and the way to it.
type postings struct {
	// epoch is that of few, or of the list of blocks.
	epoch uint64
	few   []uint32
	many  *cowList[block]
	len   uint32
}

type block [blockLen]uint32

const (
	blockLen = 256
	// fewAgain is at how many the blocks become a slice again: well below a block, so that
	// one that comes and goes does not copy all each time.
	fewAgain = blockLen / 2
)

func (p *postings) at(place uint32) uint32 {
	if p.many == nil {
		return p.few[place]
	}
	return p.many.get(place / blockLen)[place%blockLen]
}

// add appends a number, and returns its place.
func (p *postings) add(number uint32, epoch uint64) (place uint32) {
	place = p.len
	p.len++
	if p.many == nil && place < blockLen {
		p.ownFew(epoch, int(place)+1)
		p.few = append(p.few, number)
		return place
	}
	if p.many == nil {
		p.many, p.epoch = &cowList[block]{}, epoch
		p.many.reach(0, epoch)
		copy(p.many.own(0, epoch)[:], p.few)
		p.few = nil
	}
	p.ownMany(epoch)
	p.many.reach(place/blockLen, epoch)
	p.many.own(place/blockLen, epoch)[place%blockLen] = number
	return place
}

// remove moves the last number to a place, in which it replaces another, and returns it.
func (p *postings) remove(place uint32, epoch uint64) (moved uint32) {
	p.len--
	moved = p.at(p.len)
	if p.many == nil {
		p.ownFew(epoch, len(p.few))
		p.few[place] = moved
		p.few = p.few[:p.len]
		return moved
	}
	p.ownMany(epoch)
	p.many.own(place/blockLen, epoch)[place%blockLen] = moved
	if p.len%blockLen == 0 {
		p.many.truncate(p.len/blockLen, epoch)
	}
	if p.len <= fewAgain {
		p.few, p.many = slices.Clone(p.many.get(0)[:p.len]), nil
	}
	return moved
}

// ownFew makes few a slice that may be changed, with room for so many.
func (p *postings) ownFew(epoch uint64, room int) {
	// There are as many slices as values, so what is left free in them counts.
	spare := room / 4
	if p.epoch == epoch && room <= cap(p.few) && cap(p.few)-room <= 2*spare+8 {
		return
	}
	grown := make([]uint32, len(p.few), (room+spare+3)&^3)
	copy(grown, p.few)
	p.few, p.epoch = grown, epoch
}

func (p *postings) ownMany(epoch uint64) {
	if p.epoch != epoch {
		many := p.many.clone()
		p.many, p.epoch = &many, epoch
	}
}

// runs calls yield with the numbers, some at a time.
func (p *postings) runs(yield func(numbers []uint32) bool) {
	if p.many == nil {
		yield(p.few)
		return
	}
	for from := uint32(0); from < p.len; from += blockLen {
		if !yield(p.many.get(from / blockLen)[:min(p.len-from, blockLen)]) {
			return
		}
	}
}

// reference is where a cell stands in an index: a record, and the place in its postings. The
// zero value is nowhere.
type reference struct{ record, place uint32 }

// several is the record of a reference whose cell has several: see references.several.
const several = ^uint32(0)

func (r reference) isOne() bool { return r.record != 0 && r.record != several }

// references are those of all cells to one index, and what else only the writer needs to know
// of it.
type references struct {
	perCell[reference]
	// several are those of the cells that have several values, in the order of the values.
	several map[uint32][]reference
	// free are the numbers of records without a value, records how many there are, with the
	// one that is never used.
	free    []uint32
	records uint32
}

func newReferences() references { return references{records: 1} }

// reserve makes room for a write in place, so that nothing large is moved while readers wait.
func (r *references) reserve(cells uint32) {
	r.free = slices.Grow(r.free, inPlace)
	r.reach(cells + inPlace)
}

// all are the references of a cell. They must not be changed.
func (r *references) all(number uint32) []reference {
	switch one := r.of(number); one.record {
	case 0:
		return nil
	case several:
		return r.several[number]
	default:
		return []reference{one}
	}
}

func (r *references) setAll(number uint32, all []reference) {
	if delete(r.several, number); len(r.several) == 0 {
		r.several = nil // a map keeps its memory
	}
	switch len(all) {
	case 0:
		r.set(number, reference{})
	case 1:
		r.set(number, all[0])
	default:
		if r.several == nil {
			r.several = map[uint32][]reference{}
		}
		r.several[number] = all
		r.set(number, reference{record: several})
	}
}

// moved notes that a cell stands in another place of a record's postings.
func (r *references) moved(number, record, place uint32) {
	if r.of(number).record != several {
		r.set(number, reference{record, place})
		return
	}
	all := r.several[number]
	all[find(all, record)].place = place
}

func find(all []reference, record uint32) int {
	return slices.IndexFunc(all, func(one reference) bool { return one.record == record })
}

// Index sets the values of an entry in one of the indexes.
func (w *Write) Index(at int, number uint32, values []string) {
	refs := &w.references[at]
	one := refs.of(number)
	switch {
	case len(values) == 1 && one.isOne() && w.s.indexes[at].record(one.record).text == values[0]:
		// Nearly all updates.
	case len(values) > 1 || one.record == several:
		w.reindexSeveral(at, number, values)
	case len(values) == 1:
		if one.isOne() {
			w.unpost(at, one)
		}
		refs.set(number, w.post(at, number, values[0]))
	case one.isOne():
		refs.set(number, reference{})
		w.unpost(at, one)
	}
}

func (w *Write) reindexSeveral(at int, number uint32, values []string) {
	refs, i := &w.references[at], w.s.indexes[at]
	had := refs.all(number)
	if slices.EqualFunc(had, values, func(one reference, text string) bool { return i.record(one.record).text == text }) {
		return
	}
	now, kept := make([]reference, len(values)), make([]bool, len(had))
	for k, text := range values {
		if record, found := i.find(text, i.hash(text)); found {
			if before := find(had, record); before >= 0 {
				now[k], kept[before] = had[before], true
			}
		}
	}
	// Removals first, so that their records are used again. None moves another reference of
	// this cell, which stands once in each record.
	for k, one := range had {
		if !kept[k] {
			w.unpost(at, one)
		}
	}
	for k := range now {
		if now[k].record == 0 {
			now[k] = w.post(at, number, values[k])
		}
	}
	refs.setAll(number, now)
}

// post adds a cell to those that have a value.
func (w *Write) post(at int, number uint32, text string) reference {
	i := w.ownIndex(at)
	hash := i.hash(text)
	to, found := i.find(text, hash)
	if !found {
		to = w.addRecord(at, i, text, hash)
	}
	return reference{to, i.own(to).postings.add(number, i.epoch)}
}

// addRecord makes a record for a new value. It copies the text, which is usually part of an
// object and would keep it alive.
func (w *Write) addRecord(at int, i *index, text string, hash uint32) (number uint32) {
	refs := &w.references[at]
	if last := len(refs.free) - 1; last >= 0 {
		number = refs.free[last]
		refs.free = refs.free[:last]
	} else {
		number = refs.records
		refs.records++
	}
	i.own(number).text = strings.Clone(text)
	for !i.values.put(hash, number, i.epoch) {
		i.values.double(i.epoch)
	}
	i.len++
	return number
}

// unpost removes a cell from those that have a value.
func (w *Write) unpost(at int, one reference) {
	i, refs := w.ownIndex(at), &w.references[at]
	r := i.own(one.record)
	last := r.postings.len - 1
	if moved := r.postings.remove(one.place, i.epoch); one.place != last {
		refs.moved(moved, one.record, one.place)
	}
	if r.postings.len > 0 {
		return
	}
	i.values.remove(i.hash(r.text), one.record, i.epoch)
	*r = record{}
	i.len--
	refs.free = append(refs.free, one.record)
}
