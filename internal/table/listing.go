package table

import "slices"

// Listing marks the entries that a list of the source has confirmed, so that the remaining ones can
// be removed at its end. The marks are a byte per cell. They stay correct while cells are freed,
// reused, and moved when the table is packed.
//
// An entry is confirmed only if Confirm was called since it was added. Changing an entry does not
// change its mark. An entry that is added, or removed and added again, while the listing is open is
// unconfirmed. To let a direct write or a watch event outlive the list, call Confirm after writing
// it.
//
// Several listings may be open. Only the goroutine that may write may call the methods, during a
// write or between two. During a write they see its changes.
type Listing struct {
	table *Table
	marks perCell[mark]
	// confirmed is the number of confirmed entries.
	confirmed int
	// absent has the hashes of the keys that were confirmed while they had no entry, and of those
	// whose confirmed entry was removed. They matter only for entries that are added later.
	absent map[uint32]struct{}
}

// mark is the state of an entry in a listing.
type mark uint8

const (
	// The entry was there before the listing, and is not confirmed.
	unconfirmed mark = iota
	// The entry was added since, and is not confirmed.
	added
	confirmed
)

// BeginListing opens a listing that has confirmed nothing. Call End afterwards.
func (t *Table) BeginListing() *Listing {
	l := &Listing{
		table:  t,
		absent: map[uint32]struct{}{},
	}
	t.listings = append(t.listings, l)
	return l
}

// Confirm records that the list has the key of a slot.
func (l *Listing) Confirm(at Slot) {
	if !at.Exists {
		l.absent[at.hash] = struct{}{}
		return
	}
	if l.marks.get(at.Number) == confirmed {
		return
	}
	l.marks.set(at.Number, confirmed)
	l.confirmed++
}

// MayBeConfirmed reports whether Confirm may have been called for the key of a slot. False is
// certain, and so is true for an entry that was there before the listing. Otherwise another key may
// have its hash.
func (l *Listing) MayBeConfirmed(at Slot) bool {
	if at.Exists {
		switch l.marks.get(at.Number) {
		case confirmed:
			return true
		case unconfirmed:
			return false
		}
	}
	_, hashConfirmed := l.absent[at.hash]
	return hashConfirmed
}

// Has reports whether the entry in a slot is confirmed.
func (l *Listing) Has(at Slot) bool {
	return at.Exists && l.marks.get(at.Number) == confirmed
}

// entryAdded marks a new entry.
func (l *Listing) entryAdded(number uint32) {
	l.marks.set(number, added)
}

// entryRemoved ends the mark of the entry of a slot.
func (l *Listing) entryRemoved(at Slot) {
	before := l.marks.get(at.Number)
	if before == unconfirmed {
		return
	}
	l.marks.set(at.Number, unconfirmed)
	if before == confirmed {
		l.confirmed--
		l.absent[at.hash] = struct{}{}
	}
}

// Missing returns the number of entries that are not confirmed.
func (l *Listing) Missing() int {
	return l.table.state.len - l.confirmed
}

// Unconfirmed calls yield with the key of each entry that is not confirmed, until it returns false.
// yield may remove the entry.
func (l *Listing) Unconfirmed(yield func(Key) bool) {
	for number := uint32(0); l.Missing() > 0; number++ {
		s := l.table.state // a change in yield may have replaced it
		if number >= s.cells {
			return
		}
		c := s.cell(number).content
		if c.isFree() || l.marks.get(number) == confirmed {
			continue
		}
		if !yield(s.key(c)) {
			return
		}
	}
}

// End closes the listing. Calling it twice is allowed.
func (l *Listing) End() {
	isEnded := func(open *Listing) bool { return open == l }
	l.table.listings = slices.DeleteFunc(l.table.listings, isEnded)
}
