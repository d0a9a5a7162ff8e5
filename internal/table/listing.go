package table

import "slices"

// Listing marks the entries that a list of the source has confirmed, so that its end finds
// those that the source no longer has. The marks are a byte per cell. The table keeps them
// right while cells are freed, used again, and moved when it is packed.
//
// An entry is confirmed only by a call of Confirm since it was added. A change of
// an entry does not touch its mark. An entry that anybody adds while the listing is open, or
// removes and adds again, is unconfirmed until the caller confirms it: if a write by hand or
// a watch event is to outlive the list, confirm it after it is written.
//
// Several listings may be open. All methods may only be called by the goroutine that may write,
// during a write or between two; during a write they see its changes.
type Listing struct {
	table *Table
	marks perCell[bool]
}

// BeginListing opens a listing that has confirmed nothing. Call End when it is done with.
func (t *Table) BeginListing() *Listing {
	l := &Listing{table: t}
	t.listings = append(t.listings, l)
	return l
}

// Confirm marks the entry with a number.
func (l *Listing) Confirm(number uint32) { l.marks.set(number, true) }

// Confirmed reports whether the entry with a number is marked.
func (l *Listing) Confirmed(number uint32) bool { return l.marks.get(number) }

// Unconfirmed calls yield with the key of each entry that is not marked, until it returns false. It may remove the entry.
func (l *Listing) Unconfirmed(yield func(Key) bool) {
	for number := uint32(0); number < l.table.s.cells; number++ {
		s := l.table.s // which a change in yield may have replaced
		if c := s.cell(number); c.kind != 0 && !l.marks.get(number) && !yield(s.key(c)) {
			return
		}
	}
}

// End closes the listing. Calling it again does nothing.
func (l *Listing) End() {
	l.table.listings = slices.DeleteFunc(l.table.listings, func(open *Listing) bool { return open == l })
	l.marks = perCell[bool]{}
}
