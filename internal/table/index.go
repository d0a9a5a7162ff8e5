package table

import "hash/maphash"

// index finds the cells that have a value.
//
//	text of a value ──directory──▶ record: its text and its postings, the numbers of the cells
//	cell ──reference──▶ the record, and the place among its postings (only the writer asks)
//
// A posting is taken out by putting the last one in its place, so that neither costs more
// the more there are.
type index struct {
	owner uint64
	seed  maphash.Seed
	// values finds records, whose numbers begin with 1.
	values *directory
	pages  []*recordPage
	// len is how many values at least one object has.
	len int
}

const (
	// recordChunkLen is how many records are copied together. With what is before them, and
	// 8 bytes that the allocator puts before what has pointers, they are 2 kB, which it
	// gives without waste, and each of them is one cache line.
	recordChunkLen = 31
	recordPageLen  = 64
	recordsPerPage = recordChunkLen * recordPageLen
)

type recordPage struct {
	owner  uint64
	chunks [recordPageLen]*recordChunk
}

type recordChunk struct {
	owner   uint64
	_       [6]uint64
	records [recordChunkLen]record
}

// record is a value and who has it, in 64 bytes.
type record struct {
	text     string
	postings postings
}

func newIndex(owner uint64, seed maphash.Seed) *index {
	return &index{owner: owner, seed: seed, values: newDirectory(owner)}
}

func (i *index) hashOf(number uint32, _ uint64) uint64 {
	return hashOfText(i.seed, i.record(number).text)
}

func (i *index) record(number uint32) *record {
	chunk := number / recordChunkLen
	return &i.pages[chunk/recordPageLen].chunks[chunk%recordPageLen].records[number%recordChunkLen]
}

func (i *index) find(text string, hash uint64) (number uint32, found bool) {
	var search search
	search.begin(i.values.segment(hash), hash)
	for place := search.next(); place >= 0; place = search.next() {
		if number = search.segment.number(place); i.record(number).text == text {
			return number, true
		}
	}
	return 0, false
}

// each calls f with each record that somebody has.
func (i *index) each(f func(*record) bool) bool {
	for _, p := range i.pages {
		for _, c := range p.chunks {
			if c == nil {
				continue
			}
			for at := range c.records {
				if r := &c.records[at]; r.postings.len > 0 && !f(r) {
					return false
				}
			}
		}
	}
	return true
}

// ownIndex makes the index of a write one that may be changed.
func (w *Write) ownIndex(at int) *index {
	i := w.s.indexes[at]
	if i.owner != w.epoch {
		copied := *i
		copied.owner = w.epoch
		copied.pages = append([]*recordPage(nil), i.pages...)
		i = &copied
		w.s.indexes[at] = i
	}
	return i
}

// own makes a record one that may be changed.
func (i *index) own(number uint32) *record {
	for int(number/recordsPerPage) >= len(i.pages) {
		i.pages = append(i.pages, &recordPage{owner: i.owner})
	}
	page := &i.pages[number/recordsPerPage]
	if (*page).owner != i.owner {
		copied := **page
		copied.owner = i.owner
		*page = &copied
	}
	chunk := &(*page).chunks[number/recordChunkLen%recordPageLen]
	switch {
	case *chunk == nil:
		*chunk = &recordChunk{owner: i.owner}
	case (*chunk).owner != i.owner:
		copied := **chunk
		copied.owner = i.owner
		*chunk = &copied
	}
	return &(*chunk).records[number%recordChunkLen]
}
