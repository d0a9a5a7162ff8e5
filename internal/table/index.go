package table

import (
	"hash/maphash"
	"strings"
)

// index finds the cells that have a value.
//
//	text of a value ──directory──▶ record: its text and its postings (numbers of cells)
//	cell ──references──▶ the records of its values (only the writer uses them)
//
// Get reads no index, so an index is changed without regard for concurrent readers.
type index struct {
	epoch uint64
	seed  maphash.Seed
	// values finds records, whose numbers begin with 1.
	values  directory
	records cowList[record]
	// len is the number of values that at least one object has. allocated is the number of records,
	// including record 0 and free ones.
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
	return &index{
		epoch:     epoch,
		seed:      seed,
		values:    newDirectory(epoch),
		allocated: 1,
	}
}

func (i *index) hash(text string) uint32 {
	hash := maphash.String(i.seed, text)
	return hashOf(hash)
}

func (i *index) record(number uint32) *record {
	return &i.records.get(number).value
}

func (i *index) find(text string, hash uint32) (number uint32, found bool) {
	return i.values.find(hash, func(candidate uint32) bool {
		return i.record(candidate).text == text
	})
}

// each calls yield with each value that an object has.
func (i *index) each(yield func(string) bool) {
	for number := uint32(1); number < i.allocated; number++ {
		r := i.record(number)
		if r.postings.len > 0 && !yield(r.text) {
			return
		}
	}
}

// add adds a cell to those that have a value. It must not be one of them.
func (i *index) add(text string, cell uint32) reference {
	hash := i.hash(text)
	number, found := i.find(text, hash)
	if !found {
		number = i.addRecord(text, hash)
	}
	r := i.records.writable(number, i.epoch)
	return reference{
		record: number,
		place:  r.postings.add(cell, i.epoch),
	}
}

// addRecord returns a new record for a value that no cell has.
func (i *index) addRecord(text string, hash uint32) (number uint32) {
	if i.free > 0 {
		number = i.free
		i.free = i.record(number).next
	} else {
		number = i.allocated
		i.allocated++
	}
	// A copy: the text is usually part of an object and would keep it alive.
	own := strings.Clone(text)
	r := i.records.writable(number, i.epoch)
	*r = record{text: own}
	for !i.values.put(hash, number, i.epoch) {
		i.values.double()
	}
	i.len++
	return number
}

// remove removes a cell from those that have a value. It returns the cell whose number moves to its
// place in the postings: the cell itself if it was at the end.
func (i *index) remove(from reference) (moved uint32) {
	r := i.records.writable(from.record, i.epoch)
	moved = r.postings.remove(from.place, i.epoch)
	if r.postings.len == 0 {
		hash := i.hash(r.text)
		i.values.remove(hash, from.record, i.epoch)
		*r = record{next: i.free}
		i.free = from.record
		i.len--
	}
	return moved
}
