package table

import (
	"cmp"
	"slices"
	"strings"
)

// reference is where a cell stands in an index: a record, and the place in its postings. The
// zero value is nowhere.
type reference struct{ record, place uint32 }

// elsewhere is the record of a cell that stands in several: see references.several.
const elsewhere = ^uint32(0)

// isOne says whether a cell stands in just one record, which this is.
func (r reference) isOne() bool { return r.record != 0 && r.record != elsewhere }

// references are those of all cells to one index, and what else only the writer needs to
// know of that.
type references struct {
	// chunks are nil where no cell has had a value yet, and so is what comes after them.
	chunks []*[chunkLen]reference
	// several are those of cells that have not one value but more.
	several map[uint32]several
	// free are the numbers of records that hold nothing, records how many there are, with
	// the one that is never used.
	free    []uint32
	records uint32
}

func newReferences() references { return references{records: 1} }

// reserve makes room for what a write in place may add where there are so many cells: to make
// it there is to copy all that has grown, which readers should not wait for.
func (r *references) reserve(cells uint32) {
	r.free = slices.Grow(r.free, inPlace)
	r.reach(cells + inPlace)
}

// reach makes the chunks so many that the one of a cell is among them.
func (r *references) reach(number uint32) {
	if more := int(number/chunkLen) + 1 - len(r.chunks); more > 0 {
		r.chunks = append(r.chunks, make([]*[chunkLen]reference, more)...)
	}
}

func (r *references) of(number uint32) reference {
	if int(number/chunkLen) >= len(r.chunks) {
		return reference{}
	}
	c := r.chunks[number/chunkLen]
	if c == nil {
		return reference{}
	}
	return c[number%chunkLen]
}

func (r *references) set(number uint32, to reference) {
	r.reach(number)
	at := &r.chunks[number/chunkLen]
	if *at == nil {
		*at = new([chunkLen]reference)
	}
	(*at)[number%chunkLen] = to
}

// all are the references of a cell, in the order in which it was given its values. They are
// not to be written to.
func (r *references) all(number uint32) []reference { return r.severalOf(number).all }

func (r *references) severalOf(number uint32) several {
	switch one := r.of(number); one.record {
	case 0:
		return several{}
	case elsewhere:
		return r.several[number]
	default:
		return several{all: []reference{one}}
	}
}

func (r *references) setAll(number uint32, all []reference) {
	if delete(r.several, number); len(r.several) == 0 {
		r.several = nil // a map keeps its memory
	}
	switch len(all) {
	case 0:
		if r.of(number) != (reference{}) {
			r.set(number, reference{})
		}
	case 1:
		r.set(number, all[0])
	default:
		if r.several == nil {
			r.several = map[uint32]several{}
		}
		r.several[number] = newSeveral(all)
		r.set(number, reference{record: elsewhere})
	}
}

// moved notes that a cell stands in another place of a record's postings.
func (r *references) moved(number, record, place uint32) {
	if r.of(number).record != elsewhere {
		r.set(number, reference{record, place})
		return
	}
	s := r.several[number]
	s.all[s.find(record)].place = place
}

// SeveralUnder is how many values what is under a key has, in all indexes in which it has
// several. Only the writer asks, and need not have begun: to take out many values takes as
// long as many changes, so such a write should be made aside.
func (t *Table) SeveralUnder(key Key) (count int) {
	some := false
	for i := range t.references {
		some = some || t.references[i].several != nil
	}
	if !some {
		return 0 // as a rule, and without a search
	}
	w := Write{Table: t, s: t.state.Load()}
	if number, _, exists := w.find(key, key.hash(t.seed)); exists {
		for i := range t.references {
			count += len(t.references[i].several[number].all)
		}
	}
	return count
}

// several are the references of a cell that has several values.
type several struct {
	// all are in the order of the values: most updates give the same ones in the same
	// order again, which is the least to compare.
	all []reference
	// byRecord are the places in all, in the order of the numbers of the records; nil if
	// it is as well to look at each.
	byRecord []uint32
}

// lookAtEach is up to how many references are looked at one by one: they are in two cache
// lines.
const lookAtEach = 16

func newSeveral(all []reference) several {
	s := several{all: all}
	if len(all) > lookAtEach {
		s.byRecord = make([]uint32, len(all))
		for at := range s.byRecord {
			s.byRecord[at] = uint32(at)
		}
		slices.SortFunc(s.byRecord, func(a, b uint32) int { return cmp.Compare(all[a].record, all[b].record) })
	}
	return s
}

// find is the place in all of the reference to a record, -1 if there is none.
func (s *several) find(record uint32) int {
	if s.byRecord == nil {
		return slices.IndexFunc(s.all, func(one reference) bool { return one.record == record })
	}
	at, found := slices.BinarySearchFunc(s.byRecord, record, func(at, record uint32) int {
		return cmp.Compare(s.all[at].record, record)
	})
	if !found {
		return -1
	}
	return int(s.byRecord[at])
}

// reindex makes values those that a cell has in an index.
func (w *Write) reindex(at int, number uint32, values []string) {
	refs := &w.references[at]
	one := refs.of(number)
	// First what nearly all updates are.
	if len(values) == 1 && one.isOne() && w.s.indexes[at].record(one.record).text == values[0] {
		return
	}
	switch {
	case len(values) > 1 || one.record == elsewhere:
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
	refs := &w.references[at]
	had := refs.severalOf(number)
	if w.haveTexts(at, had.all, values) {
		return
	}
	i := w.s.indexes[at]
	now, kept := make([]reference, len(values)), make([]bool, len(had.all))
	for k, text := range values {
		record, found := i.find(text, hashOfText(w.seed, text))
		if !found {
			continue
		}
		if before := had.find(record); before >= 0 {
			now[k], kept[before] = had.all[before], true
		}
	}
	// What is no longer there is taken out first, so that its records are used again. No
	// other reference of this cell is moved by that: it is once in each record.
	for k, one := range had.all {
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

// haveTexts says whether references are to those values, in that order.
func (w *Write) haveTexts(at int, all []reference, values []string) bool {
	if len(all) != len(values) {
		return false
	}
	i := w.s.indexes[at]
	for k, one := range all {
		if i.record(one.record).text != values[k] {
			return false
		}
	}
	return true
}

// post adds a cell to those that have a value.
func (w *Write) post(at int, number uint32, text string) reference {
	i := w.ownIndex(at)
	hash := hashOfText(w.seed, text)
	to, found := i.find(text, hash)
	if !found {
		to = w.addRecord(at, i, text, hash)
	}
	return reference{to, i.own(to).postings.add(number, i.owner)}
}

// addRecord makes a record for a value that nobody has. It keeps a text of its own: the one
// that is handed in is part of an object as a rule, all of whose memory it would keep, and
// those of new records are beside each other, where updates compare one after the other.
func (w *Write) addRecord(at int, i *index, text string, hash uint64) (number uint32) {
	refs := &w.references[at]
	if last := len(refs.free) - 1; last >= 0 {
		number = refs.free[last]
		refs.free = refs.free[:last]
	} else {
		number = refs.records
		refs.records++
	}
	i.own(number).text = strings.Clone(text)
	e := editor{i.values, i.owner, i, nil}
	e.put(hash, number)
	i.values = e.directory
	i.len++
	return number
}

// unpost takes a cell from those that have a value.
func (w *Write) unpost(at int, one reference) {
	i := w.ownIndex(at)
	r := i.own(one.record)
	last := r.postings.len - 1
	if moved := r.postings.remove(one.place, i.owner); one.place != last {
		w.references[at].moved(moved, one.record, one.place)
	}
	if r.postings.len > 0 {
		return
	}
	e := editor{i.values, i.owner, i, nil}
	e.remove(hashOfText(w.seed, r.text), one.record)
	i.values = e.directory
	*r = record{}
	i.len--
	w.references[at].free = append(w.references[at].free, one.record)
}
