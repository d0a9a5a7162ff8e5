package table

import (
	"slices"
	"strings"
)

// reference is a value of a cell in an index: the value's record, and the place of the cell in the
// record's postings.
type reference struct {
	record uint32
	place  uint32
}

// several is the record in the reference of a cell that has several values in an index.
const several = 1<<32 - 1

// references have the values of each cell in all indexes. Only the writer uses them, so they are
// not versioned.
type references struct {
	// indexes is the number of indexes.
	indexes int
	// chunks have a reference for each index, side by side, of each cell: to no record if the cell
	// has no value. A chunk is nil if no cell in it has had a value.
	chunks [][]reference
	// multiple has the references of cells with several values, in the order of their texts.
	multiple map[cellIndex][]reference
}

// cellIndex is a cell in an index.
type cellIndex struct {
	cell  uint32
	index int
}

// of returns the references of a cell in an index, in the order of their texts. Their places may be
// changed.
func (r *references) of(cell uint32, index int) []reference {
	chunk := int(cell / chunkLen)
	if chunk >= len(r.chunks) || r.chunks[chunk] == nil {
		return nil
	}
	at := r.position(cell, index)
	switch r.chunks[chunk][at].record {
	case 0:
		return nil
	case several:
		return r.multiple[cellIndex{cell, index}]
	default:
		return r.chunks[chunk][at : at+1]
	}
}

// position returns the position of a cell in its chunk.
func (r *references) position(cell uint32, index int) int {
	return int(cell%chunkLen)*r.indexes + index
}

// set sets the references of a cell in an index. It does not retain the slice.
func (r *references) set(cell uint32, index int, to []reference) {
	one := r.writable(cell, index)
	key := cellIndex{cell, index}
	if one.record == several {
		delete(r.multiple, key)
		if len(r.multiple) == 0 {
			r.multiple = nil // a map does not release its memory
		}
	}
	switch len(to) {
	case 0:
		*one = reference{}
	case 1:
		*one = to[0]
	default:
		*one = reference{record: several}
		if r.multiple == nil {
			r.multiple = map[cellIndex][]reference{}
		}
		r.multiple[key] = slices.Clone(to)
	}
}

// writable returns the place for a reference of a cell, with a new chunk if there is none.
func (r *references) writable(cell uint32, index int) *reference {
	number := int(cell / chunkLen)
	missing := number + 1 - len(r.chunks)
	if missing > 0 {
		more := make([][]reference, missing)
		r.chunks = append(r.chunks, more...)
	}
	chunk := r.chunks[number]
	if chunk == nil {
		chunk = make([]reference, chunkLen*r.indexes)
		r.chunks[number] = chunk
	}
	at := r.position(cell, index)
	return &chunk[at]
}

// countMultiple returns how many values a cell has in indexes in which it has several.
func (r *references) countMultiple(cell uint32) (count int) {
	if r.multiple == nil {
		return 0
	}
	for index := range r.indexes {
		count += len(r.multiple[cellIndex{cell, index}])
	}
	return count
}

// grow adds an index after the others.
func (r *references) grow() {
	before := r.indexes
	r.indexes++
	for at, chunk := range r.chunks {
		if chunk == nil {
			continue
		}
		wider := make([]reference, chunkLen*r.indexes)
		for cell := range chunkLen {
			from := chunk[cell*before:][:before]
			to := wider[cell*r.indexes:]
			copy(to, from)
		}
		r.chunks[at] = wider
	}
}

// Index sets the values of an entry in one index. See Put.
func (t *Table) Index(at int, number uint32, values []string) {
	before := t.references.of(number, at)
	if t.state.indexes[at].haveTexts(before, values) {
		return // most updates
	}

	i := t.writableIndex(at)
	var buffer [4]reference
	now := buffer[:0]
	// Both lists are sorted, so that one pass finds what to add and what to remove.
	for len(before) > 0 || len(values) > 0 {
		switch i.compareFirst(before, values) {
		case -1:
			t.removeValue(at, number, before[0])
			before = before[1:]
		case 1:
			now = append(now, i.add(values[0], number))
			values = values[1:]
		default:
			now = append(now, before[0])
			before = before[1:]
			values = values[1:]
		}
	}
	t.references.set(number, at, now)
}

// haveTexts reports whether references are those of values.
func (i *index) haveTexts(refs []reference, values []string) bool {
	isReferenceTo := func(r reference, text string) bool {
		return i.text(r) == text
	}
	return slices.EqualFunc(refs, values, isReferenceTo)
}

// text returns the value of a reference.
func (i *index) text(of reference) string {
	r := i.record(of.record)
	return r.text
}

// appendTexts appends the values of references.
func (i *index) appendTexts(texts []string, refs []reference) []string {
	for _, r := range refs {
		texts = append(texts, i.text(r))
	}
	return texts
}

// compareFirst compares the first reference with the first value, and returns -1, 0 or 1. A missing
// one is the higher one.
func (i *index) compareFirst(refs []reference, values []string) int {
	if len(refs) == 0 {
		return 1
	}
	if len(values) == 0 {
		return -1
	}
	return strings.Compare(i.text(refs[0]), values[0])
}

// removeValue removes a value of a cell from an index. Another cell may get its place.
func (t *Table) removeValue(at int, cell uint32, from reference) {
	i := t.state.indexes[at]
	text := i.text(from)
	moved := i.remove(from)
	if moved != cell {
		refs := t.references.of(moved, at)
		position := i.search(refs, text)
		refs[position].place = from.place
	}
	t.removed = true
}

// search returns the position of the reference to a value.
func (i *index) search(refs []reference, text string) int {
	if len(refs) == 1 {
		return 0
	}
	compare := func(r reference, text string) int {
		return strings.Compare(i.text(r), text)
	}
	at, _ := slices.BinarySearchFunc(refs, text, compare)
	return at
}

// writableIndex returns an index that may be changed: a copy if it is of an older epoch.
func (t *Table) writableIndex(at int) *index {
	i := t.state.indexes[at]
	if i.epoch == t.epoch {
		return i
	}
	copied := *i
	copied.epoch = t.epoch
	copied.values.segments = i.values.segments.clone()
	copied.records = i.records.clone()
	t.state.indexes[at] = &copied
	return &copied
}
