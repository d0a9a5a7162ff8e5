package eventlog

import "time"

// Record is one change of an object, as a handler is notified of it.
type Record[K comparable] struct {
	Key K
	// Old is the object before an Update, and the final state or the tombstone of a Delete or a Recreate.
	Old any
	// New is the object of an Add, an Update or a Recreate.
	New any
	// Since is when the record began to wait, relative to the start of the log. Append sets it. A merged record has
	// that of its oldest part.
	Since time.Duration
	Kind  Kind
	// Initial is set if the record belongs to the first list.
	Initial bool
}

// Kind is the kind of a change.
type Kind uint8

const (
	// None is the kind of the zero Record: nothing to deliver.
	None Kind = iota
	Add
	// Update has an unchanged object as both Old and New for a resync.
	Update
	Delete
	// Recreate is a Delete of Old and an Add of New.
	Recreate
	// End follows the last record of the first list. It has no object and does not count as a change.
	End
)

// merge replaces first by the record to deliver instead of first and later, which have the same key. Its kind is None
// if the two cancel out.
//
//	first \ later   Update               Delete             Recreate             Add
//	Add             Add(new)             None               Add(new)             Add(new)
//	Update          Update(first's old)  Delete             Recreate             Update(first's old)
//	Delete          Recreate(first's old, new)              as Update            as Update
//	Recreate        Recreate(first's old, new)              as Update            as Update
//
// Delete after Delete or Recreate is a Delete of the first's old object. Pairs that no source produces, such as Update
// after Delete, result in the same final state.
func merge[K comparable](first, later *Record[K]) {
	switch first.Kind {
	case Add:
		if first.New = later.New; later.Kind == Delete {
			*first = Record[K]{}
		}
	case Update:
		old, since := first.Old, first.Since
		*first = *later
		first.Since = since
		if later.Kind == Update || later.Kind == Add {
			first.Kind, first.Old = Update, old
		}
	case Delete, Recreate:
		first.Kind, first.New = Recreate, later.New
		if later.Kind == Delete {
			first.Kind = Delete
		}
	}
}
