package table

import "slices"

// Listing marks the entries that a list of the source has confirmed, so that the remaining ones can be removed at its
// end. The marks are a byte per cell. They stay correct while cells are freed, reused, and moved when the table is
// packed.
//
// An entry is confirmed only if Confirm was called since it was added. Changing an entry does not change its mark. An
// entry that is added, or removed and added again, while the listing is open is unconfirmed. To let a direct write or a
// watch event outlive the list, call Confirm after writing it.
//
// Several listings may be open. Only the goroutine that may write may call the methods, during a write or between two.
// During a write they see its changes.
type Listing struct {
	table *Table
	marks perCell[bool]
	// confirmed is the number of marked entries.
	confirmed int
	// absent has the keys that were confirmed while they had no entry, and those whose marked entry was removed.
	absent map[Key]bool
}

// BeginListing opens a listing that has confirmed nothing. Call End afterwards.
func (t *Table) BeginListing() *Listing {
	l := &Listing{table: t, absent: map[Key]bool{}}
	t.listings = append(t.listings, l)
	return l
}

// Confirm records that the list has a key, whose slot is at, and reports whether it was recorded before.
func (l *Listing) Confirm(key Key, at Slot) (again bool) {
	marked := at.Exists && l.marks.get(at.Number)
	again = marked || l.absent[key]
	switch {
	case !at.Exists:
		l.absent[key] = true
	case !marked:
		l.marks.set(at.Number, true)
		l.confirmed++
	}
	return again
}

// Missing returns the number of entries that are not marked.
func (l *Listing) Missing() int { return l.table.state.len - l.confirmed }

// Unconfirmed calls yield with the key of each unmarked entry, until it returns false. yield may remove the entry.
func (l *Listing) Unconfirmed(yield func(Key) bool) {
	for number := uint32(0); l.Missing() > 0 && number < l.table.state.cells; number++ {
		s := l.table.state // a change in yield may have replaced it
		c := s.cell(number).content
		if !c.isFree() && !l.marks.get(number) && !yield(s.key(c)) {
			return
		}
	}
}

// End closes the listing. Calling it twice is allowed.
func (l *Listing) End() {
	l.table.listings = slices.DeleteFunc(l.table.listings, func(open *Listing) bool { return open == l })
}
