// Package deltalog has the changes of a DeltaFIFO, and the versions between them, in the order in
// which they came.
//
// Records are added at the end. A batch is taken from the front; all changes of one key are taken
// from anywhere, which leaves blank records:
//
//	     head                          end
//	      ▼                             ▼
//	... │ A1 │ B1 │ A2 │ version 7 │ A3 │
//	      └───next───▶ └──────next─────▶     changes of one key
//
// What is handed out stays in the log until Finish. The head passes blank records. A version has
// been processed once the head has passed it, so it is never ahead of a change that came before it.
//
// A Log is not safe for concurrent use: the queue's lock guards it.
package deltalog

import (
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// Log is a log of changes and versions. The zero Log is empty.
type Log struct {
	records []Record
	// base is the number of the first record.
	base int64
	// head is the number of the first record that is not blank.
	head   int64
	newest newestIndex
	// handedOut has the numbers of the changes that are handed out. Versions numbered below
	// handedOutEnd are handed out too.
	handedOut    []int64
	handedOutEnd int64
	// version is the newest one.
	version string
	// processed is the newest version that the head has passed.
	processed string
	// initialEnd is the number after the last record of the first list, 0 until that has ended.
	initialEnd int64
	// used is true once a change was added.
	used bool
}

// Record is a change or a version. It is blank (zero) once it has been processed. A queue may hold
// many, so it is small.
type Record struct {
	// Object is the text of the version, if the record is one.
	Object any
	Key    table.Key
	// Origin is that of the object before any transform.
	Origin table.Origin
	// next is the distance to the next record of the same key, 0 for the newest.
	next      uint32
	Kind      Kind
	handedOut bool
}

// Kind is the kind of a record.
type Kind uint8

// The kinds of changes have the meaning of the queue's delta types.
const (
	Blank Kind = iota
	Added
	Updated
	Deleted
	Replaced
	Sync
	Version
)

// IsHandedOut reports whether a change is handed out, and not yet finished.
func (r *Record) IsHandedOut() bool { return r.handedOut }

// keptCapacity is the number of records for which the log keeps its memory, so that ordinary
// traffic does not allocate.
const keptCapacity = 2048

// at returns a record. The pointer is valid until the next one is added.
func (l *Log) at(number int64) *Record { return &l.records[number-l.base] }

// End is the number of the next record.
func (l *Log) End() int64 { return l.base + int64(len(l.records)) }

// IsEmpty reports whether the log has neither changes nor versions.
func (l *Log) IsEmpty() bool { return l.head == l.End() }

// HasChanges reports whether there is a change, handed out or not.
func (l *Log) HasChanges() bool { return !l.newest.isEmpty() }

// WasUsed reports whether a change was ever added.
func (l *Log) WasUsed() bool { return l.used }

// Processed is the newest version before which every change has been processed.
func (l *Log) Processed() string { return l.processed }

// EndInitial marks the end of the first list. InitialProcessed reports whether everything before
// that, and thus the first list, has been processed.
func (l *Log) EndInitial() { l.initialEnd = l.End() }

func (l *Log) InitialProcessed() bool { return l.head >= l.initialEnd }

// Reserve allocates memory for many changes, if the log is empty.
func (l *Log) Reserve(changes int) {
	if changes > keptCapacity && len(l.records) == 0 {
		l.records = make([]Record, 0, changes+1)
		l.newest.reserve(changes)
	}
}

// Newest returns the newest change of a key, or nil. The pointer is valid until the next Add.
func (l *Log) Newest(key table.Key) *Record {
	number, found := l.newest.find(key)
	if !found {
		return nil
	}
	return l.at(number)
}

// HasSince reports whether a key has a change with this number or a later one.
func (l *Log) HasSince(key table.Key, number int64) bool {
	newest, found := l.newest.find(key)
	return found && newest >= number
}

// KeysBefore returns the key of each change before a number. A key may occur several times. Changes
// may be added meanwhile.
func (l *Log) KeysBefore(end int64) func(yield func(table.Key) bool) {
	return func(yield func(table.Key) bool) {
		for number := l.head; number < end; number++ {
			r := l.at(number)
			if r.isChange() && !yield(r.Key) {
				return
			}
		}
	}
}

func (r *Record) isChange() bool { return r.Kind != Blank && r.Kind != Version }

// Add appends a change.
func (l *Log) Add(r Record) {
	if number, found := l.newest.find(r.Key); found {
		l.at(number).next = uint32(l.End() - number)
	}
	l.newest.set(r.Key, l.End())
	l.records = append(l.records, r)
	l.used = true
}

// AddVersion appends a version, unless it is the last one. It replaces a pending version directly
// before it, so that versions of a quiet source do not accumulate.
func (l *Log) AddVersion(version string) {
	if version == "" || version == l.version {
		return
	}
	l.version = version
	firstPending := max(l.head, l.handedOutEnd)
	last := l.End() - 1
	if last >= firstPending && l.at(last).Kind == Version {
		l.records = l.records[:len(l.records)-1]
	}
	l.records = append(l.records, Record{Object: version, Kind: Version})
}

// HandOutKey hands out all versions, and all changes of the key that has waited longest, if there
// is one. See HandedOut.
func (l *Log) HandOutKey() {
	l.handedOutEnd = l.End()
	l.advanceHead()
	if l.IsEmpty() {
		return
	}
	number := l.head
	for {
		r := l.handOut(number)
		if r.next == 0 {
			return
		}
		number += int64(r.next)
	}
}

// HandOutBatch hands out the pending records in their order, up to the second change of a key, and
// only those of the first list until that has been processed. It returns the newest version of
// them, "" if there is none.
func (l *Log) HandOutBatch() (version string) {
	end := l.End()
	if l.head < l.initialEnd {
		end = l.initialEnd
	}
	number := l.head
	for ; number < end; number++ {
		r := l.at(number)
		if r.Kind == Version {
			version = r.Object.(string)
		}
		if !r.isChange() {
			continue
		}
		l.handOut(number)
		if r.next > 0 {
			end = min(end, number+int64(r.next))
		}
	}
	l.handedOutEnd = number
	return version
}

func (l *Log) handOut(number int64) *Record {
	r := l.at(number)
	r.handedOut = true
	l.handedOut = append(l.handedOut, number)
	return r
}

// HandedOut returns the number of changes that are handed out.
func (l *Log) HandedOut() int { return len(l.handedOut) }

// EachHandedOut calls yield with each change that is handed out, in their order.
func (l *Log) EachHandedOut(yield func(*Record) bool) {
	for _, number := range l.handedOut {
		if !yield(l.at(number)) {
			return
		}
	}
}

// Finish removes the changes and versions that are handed out: they are processed.
func (l *Log) Finish() {
	for _, number := range l.handedOut {
		r := l.at(number)
		if r.next == 0 {
			l.newest.remove(r.Key)
		}
		*r = Record{}
	}
	l.handedOut = l.handedOut[:0]
	l.advanceHead()
	l.releaseProcessed()
}

// Drop makes the changes and versions that are handed out pending again.
func (l *Log) Drop() {
	for _, number := range l.handedOut {
		l.at(number).handedOut = false
	}
	l.handedOut = l.handedOut[:0]
	l.handedOutEnd = l.head
	l.advanceHead()
}

// advanceHead moves the head past blank records, and past versions that are handed out, which then
// are processed.
func (l *Log) advanceHead() {
	for ; l.head < l.End(); l.head++ {
		r := l.at(l.head)
		if r.isChange() {
			return
		}
		if r.Kind == Blank {
			continue
		}
		if l.head >= l.handedOutEnd {
			return
		}
		l.processed = r.Object.(string)
		*r = Record{}
	}
}

// releaseProcessed removes the records before the head once they are half of all, so that each is
// moved at most once on average, and the memory of a burst as it drains.
func (l *Log) releaseProcessed() {
	passed := int(l.head - l.base)
	if 2*passed <= len(l.records) {
		return
	}
	l.base = l.head
	if passed == len(l.records) && cap(l.records) <= keptCapacity {
		l.records = l.records[:0] // all are blank already
		return
	}
	l.records = slices.Delete(l.records, 0, passed)
	if cap(l.records) > keptCapacity && cap(l.records) >= 4*len(l.records) {
		l.records = append(make([]Record, 0, 2*len(l.records)), l.records...)
	}
}
