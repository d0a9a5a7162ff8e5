package table

import (
	"reflect"
	"sync/atomic"
)

// countedRecords is the number of records of an index above which Bytes counts only a part of them.
const countedRecords = 4096

// Bytes estimates the memory of the table at the time of the snapshot, without the objects and
// their names. It does not read the entries. Of an index with many values it reads a part.
func (s *Snapshot) Bytes() int64 {
	total := s.state.keys.bytes()
	total += listBytes[chunk](&s.state.chunks)
	for _, namespace := range s.state.namespaces {
		total += sizeOf[string]() + int64(len(namespace))
	}
	for _, i := range s.state.indexes {
		total += i.bytes()
	}
	return total + s.referenceBytes()
}

// referenceBytes is the memory of the references, which only the writer may read: one for each cell
// and index.
func (s *Snapshot) referenceBytes() int64 {
	chunks := (int64(s.state.cells) + chunkLen - 1) / chunkLen
	cells := chunks * chunkLen
	perCell := int64(len(s.state.indexes)) * sizeOf[reference]()
	return cells * perCell
}

func (i *index) bytes() int64 {
	total := i.values.bytes()
	total += listBytes[record](&i.records)
	step := 1 + i.allocated/countedRecords
	for number := uint32(1); number < i.allocated; number += step {
		total += int64(step) * i.record(number).bytes()
	}
	return total
}

func (r *record) bytes() int64 {
	text := int64(len(r.text))
	blocks := int64(cap(r.postings.blocks)) * sizeOf[piece[[]uint32]]()
	numbers := int64(r.postings.len) * sizeOf[uint32]()
	return text + blocks + numbers
}

// bytes counts a segment at the first of its positions.
func (d *directory) bytes() int64 {
	total := pageBytes[segment](&d.segments)
	for at := uint32(0); at <= d.mask; at++ {
		isFirst := at < 1<<d.segments.get(at).value.bits
		if isFirst {
			total += sizeOf[piece[segment]]()
		}
	}
	return total
}

// listBytes is the memory of the pieces and pages of a list in which each piece has one position.
func listBytes[T any](l *cowList[T]) int64 {
	total := pageBytes(l)
	for i := range l.pages {
		items := &l.pages[i].Load().items
		for at := range items {
			if items[at].Load() != nil {
				total += sizeOf[piece[T]]()
			}
		}
	}
	return total
}

func pageBytes[T any](l *cowList[T]) int64 {
	positions := int64(cap(l.pages))
	pages := int64(len(l.pages))
	return positions*sizeOf[atomic.Pointer[cowPage[T]]]() + pages*sizeOf[cowPage[T]]()
}

func sizeOf[T any]() int64 {
	size := reflect.TypeFor[T]().Size()
	return int64(size)
}
