package table

// Listing marks the entries that a list of the source has confirmed, so that its end finds
// those that the source no longer has. The marks are a bit per cell. The table keeps them
// right while cells are freed, used again, and moved by Pack.
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
	marks bitmap
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

// Unconfirmed calls f with each entry in scope that is not marked, until f returns false. A nil
// scope has all keys. f may remove the entry.
func (l *Listing) Unconfirmed(scope func(Key) bool, f func(key Key, found Found) bool) {
	for number := uint32(0); number < l.table.current().cells; number++ {
		if number%64 == 0 && int(number/64) < len(l.marks) && l.marks[number/64] == ^uint64(0) {
			number += 63
			continue
		}
		s := l.table.current() // which a change in f may have replaced
		c := s.read(number)
		if c.isFree() || l.marks.get(number) {
			continue
		}
		if key := s.key(&c); (scope == nil || scope(key)) && !f(key, l.table.found(number, c)) {
			return
		}
	}
}

// End closes the listing. Calling it again does nothing.
func (l *Listing) End() {
	for i, open := range l.table.listings {
		if open == l {
			l.table.listings = append(l.table.listings[:i:i], l.table.listings[i+1:]...)
		}
	}
	l.marks = nil
}
