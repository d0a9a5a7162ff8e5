// Package eventlog has the changes that an informer's handlers must be notified of. The informer
// appends each change once to a Log. Each handler reads it at its own pace through a Cursor.
//
//	  block            block            last block
//	┌─┬─┬─┬─┬─┐      ┌─┬─┬─┬─┬─┐      ┌─┬─┬─┬ ─ ┐
//	└─┴─┴─┴─┴─┘ ───▶ └─┴─┴─┴─┴─┘ ───▶ └─┴─┴─┴ ─ ┘
//	                      ▲ slowest cursor  ▲   ▲ end
//
// Blocks are linked forwards only. The log refers to the last block and each cursor to its own, so
// the garbage collector frees blocks that all cursors have read.
//
// If a cursor falls behind, the appending goroutine moves its pending records into the cursor's
// backlog, which merges them by key. An append moves a bounded number of records.
//
// The package calls no user code and starts no goroutine. Lock order: the log's, then a cursor's.
package eventlog

import (
	"sync"
	"sync/atomic"
	"time"
)

// Log is an append-only log of records with any number of cursors. All methods may be called
// concurrently.
type Log[K comparable] struct {
	// start is a nanosecond before New's, so that each Since is above 0.
	start time.Time
	// end is the number of appended records. A reader that has loaded it sees all of them.
	end atomic.Uint64

	mu sync.Mutex
	// cursors are the cursors that read the log.
	cursors []*Cursor[K]
	last    *block[K]
	// ended is set once the first list has ended.
	ended bool
}

// block is a sequence of records; from is the number of the first. A cursor loads the log's end
// first, then reads only the records before it and the next block. Append may change the rest.
type block[K comparable] struct {
	from    uint64
	records []Record[K]
	next    *block[K]
}

// endsAt reports whether the block ends just before the record with a number.
func (b *block[K]) endsAt(number uint64) bool {
	return number-b.from == uint64(len(b.records))
}

// Records per block. A record of an informer takes 80 bytes, so a small block takes 1 KiB, a large
// one 4 KiB. An idle informer has a small one.
const (
	smallBlock = 12
	largeBlock = 51
)

// New returns an empty log. Records are timed relative to start.
func New[K comparable](start time.Time) *Log[K] {
	first := &block[K]{records: make([]Record[K], smallBlock)}
	return &Log[K]{
		start: start.Add(-1),
		last:  first,
	}
}

// Append appends up to count records of one write to the store and wakes sleeping cursors. set
// stores one of them, except for its Since, or returns false if there is none; it runs under the
// log's lock, and may be called again. live is the number of keys in the store, which bounds the
// backlogs; version is the store's before the write. Append never waits for a handler.
func (l *Log[K]) Append(
	count int, set func(i int, r *Record[K]) bool, live int, now time.Time, version *string,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.cursors) == 0 {
		return
	}
	before := l.end.Load()
	end := before
	since := max(1, now.Sub(l.start))
	for i := range count {
		if l.last.endsAt(end) {
			if !set(i, &Record[K]{}) {
				continue // trimLocked clears only the last block, so that must not be an empty one
			}
			l.addBlock(end)
		}
		r := &l.last.records[end-l.last.from]
		if set(i, r) {
			r.Since = since
			end++
		}
	}
	l.end.Store(end)
	for _, c := range l.cursors {
		c.appended(int(end-before), live, since, version)
	}
}

// addBlock adds a block that begins with the record with the number from.
func (l *Log[K]) addBlock(from uint64) {
	added := &block[K]{from: from, records: make([]Record[K], largeBlock)}
	l.last.next = added
	l.last = added
}

// AppendEnd appends the end of the first list, which takes no record in the log. It must be called
// at most once. See Append for its arguments.
func (l *Log[K]) AppendEnd(live int, version *string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, c := range l.cursors {
		c.mu.Lock()
		c.endAt = l.end.Load()
		c.mu.Unlock()
		c.appended(1, live, 0, version)
	}
}

// trimLocked clears the last block once every cursor is at the end, since its objects may be large.
// It moves no cursor, and a cursor at the end reads no block.
func (l *Log[K]) trimLocked() {
	end := l.end.Load()
	used := end - l.last.from
	if used == 0 || !l.isReadLocked(end) {
		return
	}
	if len(l.last.records) > smallBlock && used <= smallBlock {
		l.last.records = make([]Record[K], smallBlock)
	} else {
		clear(l.last.records[:used])
	}
	l.last.from = end
}

// isReadLocked reports whether every cursor is at the end.
func (l *Log[K]) isReadLocked(end uint64) bool {
	for _, c := range l.cursors {
		if c.position.Load() != end {
			return false
		}
	}
	return true
}

// Record is one change of an object, as a handler is notified of it.
type Record[K comparable] struct {
	Key K
	// Old is the state that the handler received last: in an Update, a Delete or a Recreate.
	Old any
	// New is the state after the change. In a Delete it is the final state, or nil if that is not
	// delivered, since the handler never received what led to it: see merge.
	New any
	// Since is when the record began to wait, relative to the start of the log. Append sets it. A
	// merged record has that of its oldest part.
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
	// End follows the last record of the first list. It has no object and does not count as a
	// change.
	End
)

// merge merges later into first, a record of the same key. The handler receives neither the state
// that first leads to nor what later starts from, so the result starts from the state that it
// received last: first's Old. The kind becomes None if the two cancel out.
//
//	first \ later   Update      Delete    Recreate    Add
//	Add             Add         None      Add         Add
//	Update          Update      Delete    Recreate    Update
//	Delete          Recreate    Delete    Recreate    Recreate
//	Recreate        Recreate    Delete    Recreate    Recreate
//
// A merged Delete has no New. Pairs that no source produces, such as Update after Delete, result in
// the same final state.
func merge[K comparable](first, later *Record[K]) {
	first.New = later.New
	switch {
	case first.Kind == Add && later.Kind == Delete:
		*first = Record[K]{}
	case first.Kind == Add:
	case later.Kind == Delete:
		first.Kind = Delete
		first.New = nil
	case first.Kind != Update || later.Kind == Recreate:
		first.Kind = Recreate
	}
}
