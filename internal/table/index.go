package table

import (
	"hash/maphash"
	"slices"
	"sort"
	"strings"
)

// index finds the cells that have a value.
//
//	text of a value ──directory──▶ record: its text and its postings, the numbers of the cells
//	cell ──reference──▶ the records of its values (only the writer uses it)
//
// Get reads no index, so an index is changed without regard for concurrent readers.
type index struct {
	epoch uint64
	seed  maphash.Seed
	// values finds records, whose numbers begin with 1.
	values  directory
	records cowList[record]
	// len is the number of values that at least one object has. allocated is the number of records, including record 0
	// and free ones.
	len       int
	allocated uint32
	// free is the first free record, or 0.
	free uint32
}

// record is a value and the cells that have it. In a free record, next is the next free one.
type record struct {
	text     string
	postings postings
	next     uint32
}

func newIndex(epoch uint64, seed maphash.Seed) *index {
	return &index{epoch: epoch, seed: seed, values: newDirectory(epoch), allocated: 1}
}

func (i *index) hash(text string) uint32 { return hashOf(maphash.String(i.seed, text)) }

func (i *index) record(number uint32) *record { return &i.records.get(number).value }

func (i *index) find(text string, hash uint32) (number uint32, found bool) {
	return i.values.find(hash, func(candidate uint32) bool { return i.record(candidate).text == text })
}

// each calls yield with each value that an object has.
func (i *index) each(yield func(string) bool) {
	for number := uint32(1); number < i.allocated; number++ {
		if r := i.record(number); r.postings.len > 0 && !yield(r.text) {
			return
		}
	}
}

// add adds a cell to those that have a value, unless it is one of them, and returns the value's record.
func (i *index) add(text string, cell uint32) (number uint32) {
	hash := i.hash(text)
	number, found := i.find(text, hash)
	if !found {
		if number = i.free; number > 0 {
			i.free = i.record(number).next
		} else {
			number = i.allocated
			i.allocated++
		}
		// A copy: the text is usually part of an object and would keep it alive.
		*i.records.writable(number, i.epoch) = record{text: strings.Clone(text)}
		for !i.values.put(hash, number, i.epoch) {
			i.values.double()
		}
		i.len++
	}
	i.records.writable(number, i.epoch).postings.add(cell, i.epoch)
	return number
}

// remove removes a cell from those that have the value of a record.
func (i *index) remove(number, cell uint32) {
	r := i.records.writable(number, i.epoch)
	if r.postings.remove(cell, i.epoch); r.postings.len == 0 {
		i.values.remove(i.hash(r.text), number, i.epoch)
		*r = record{next: i.free}
		i.free = number
		i.len--
	}
}

// postings are the sorted numbers of the cells that have a value, in blocks, so that a change copies only one block and
// the list of blocks.
type postings struct {
	// epoch is the one in which the list of blocks was made.
	epoch  uint64
	blocks []piece[[]uint32]
	len    uint32
}

// blockLen is the maximum number of numbers in a block.
const blockLen = 1024

// find returns the block and the place in it where a number is or would be inserted.
func (p *postings) find(number uint32) (block, place int, found bool) {
	after := sort.Search(len(p.blocks), func(i int) bool { return p.blocks[i].value[0] > number })
	if block = max(0, after-1); block < len(p.blocks) {
		place, found = slices.BinarySearch(p.blocks[block].value, number)
	}
	return block, place, found
}

// writable returns a block that may be changed.
func (p *postings) writable(block int, epoch uint64) *piece[[]uint32] {
	if p.epoch != epoch {
		p.blocks, p.epoch = slices.Clone(p.blocks), epoch
	}
	b := &p.blocks[block]
	if b.epoch != epoch {
		b.value, b.epoch = slices.Clone(b.value), epoch
	}
	return b
}

func (p *postings) add(number uint32, epoch uint64) {
	at, place, found := p.find(number)
	if found {
		return
	}
	if p.len++; p.len == 1 {
		p.epoch, p.blocks = epoch, []piece[[]uint32]{{epoch: epoch}}
	}
	b := p.writable(at, epoch)
	if b.value = slices.Insert(b.value, place, number); len(b.value) <= blockLen {
		return
	}
	half := blockLen / 2
	if place == blockLen {
		half = blockLen // numbers mostly arrive in ascending order
	}
	rest := piece[[]uint32]{epoch, slices.Clone(b.value[half:])}
	b.value = slices.Clone(b.value[:half])
	p.blocks = slices.Insert(p.blocks, at+1, rest)
}

func (p *postings) remove(number uint32, epoch uint64) {
	at, place, _ := p.find(number)
	p.len--
	b := p.writable(at, epoch)
	if b.value = slices.Delete(b.value, place, place+1); len(b.value) == 0 {
		p.blocks = slices.Delete(p.blocks, at, at+1)
	} else if cap(b.value) > 4*len(b.value) {
		b.value = slices.Clone(b.value) // releases the rest of the array
	}
}

// references has the records of each cell in one index.
type references struct {
	// single has the record of a cell with one value, else 0.
	single perCell[uint32]
	// multiple has the records of cells with several values, in the order of the values.
	multiple map[uint32][]uint32
}

// appendTo appends the records of a cell to a list.
func (r *references) appendTo(list []uint32, cell uint32) []uint32 {
	if record := r.single.get(cell); record != 0 {
		return append(list, record)
	}
	return append(list, r.multiple[cell]...)
}

func (r *references) set(cell uint32, records []uint32) {
	delete(r.multiple, cell)
	single := uint32(0)
	switch {
	case len(records) == 1:
		single = records[0]
	case len(records) > 1 && r.multiple == nil:
		r.multiple = map[uint32][]uint32{cell: slices.Clone(records)}
	case len(records) > 1:
		r.multiple[cell] = slices.Clone(records)
	}
	if len(r.multiple) == 0 {
		r.multiple = nil // a map does not release its memory
	}
	r.single.set(cell, single)
}

// Index sets the values of an entry in one index. See Put.
func (t *Table) Index(at int, number uint32, values []string) {
	refs, i := &t.references[at], t.state.indexes[at]
	var buf [4]uint32
	records := refs.appendTo(buf[:0], number)
	if slices.EqualFunc(records, values, func(record uint32, text string) bool { return i.record(record).text == text }) {
		return // most updates
	}
	if i.epoch != t.epoch {
		copied := *i
		copied.epoch = t.epoch
		copied.values.segments, copied.records = i.values.segments.clone(), i.records.clone()
		i = &copied
		t.state.indexes[at] = i
	}
	for _, record := range records {
		if !slices.Contains(values, i.record(record).text) {
			i.remove(record, number)
			t.removed = true
		}
	}
	records = records[:0]
	for _, text := range values {
		records = append(records, i.add(text, number))
	}
	refs.set(number, records)
}
