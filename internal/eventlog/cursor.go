package eventlog

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Cursor is the position of one handler in a log, and the records that wait for that handler alone:
//
//	backlog, merged by key │ log from the position on, with a snapshot before one of its records
//
// Next and Resync are for the handler's goroutine; the other methods may be called concurrently.
type Cursor[K comparable] struct {
	log     *Log[K]
	merging Merging
	ready   chan struct{}

	// position is the number of the record to read next. It is stored with the lock.
	position atomic.Uint64

	mu sync.Mutex
	// asleep says that the handler waits for ready: everything was handled. handled is the store's version when it last was.
	asleep  bool
	handled string
	// block has the record at the position, or is full and right before it.
	block *block[K]
	// behind says that what waits is being merged.
	behind   bool
	backlog  backlog[K]
	snapshot *pending[K]
	// endAt is the position at which the first list ends, never once that is read.
	endAt uint64
	// waits are the calls of Handled that have not ended.
	waits []handledWait
}

// handledWait is closed once the records with a number below before were handled.
type handledWait struct {
	before uint64
	done   chan struct{}
}

// Merging says when the pending records of a cursor are merged by key.
type Merging uint8

const (
	// WhenBehind merges from the time on when more than max(1024, 2 x live keys) records wait, until none
	// waits.
	WhenBehind Merging = iota
	Always
	Never
)

// Snapshot is the content of the store after the last write whose records are in the log.
type Snapshot[K comparable] struct {
	// Len is how many records there are at most. Next returns that of one more object: an Add, or an Update to itself.
	Len  int
	Next func() (r Record[K], ok bool)
}

// pending is a snapshot that a cursor delivers before the record with the number before.
type pending[K comparable] struct {
	Snapshot[K]
	before uint64
	since  time.Duration
}

const (
	// moved is how many records an append moves into a backlog, besides twice as many as it appends: the
	// informer waits, and the processor for the memory of each.
	moved = 2048
	// nowhere is the position of a cursor that does not read: behind every record.
	nowhere = math.MaxUint64
	// never is a position that no cursor has.
	never = nowhere - 1
)

// NewCursor returns a cursor that reads nothing until Join is called.
func (l *Log[K]) NewCursor(merging Merging) *Cursor[K] {
	c := &Cursor[K]{log: l, merging: merging, behind: merging == Always, ready: make(chan struct{}, 1), endAt: never}
	c.position.Store(nowhere)
	c.backlog.reset()
	return c
}

// Join puts the cursor at the end of the log, behind a snapshot, which may be empty, and behind the end of
// the first list if that was before. No record may be appended between the snapshot and the call.
func (c *Cursor[K]) Join(now time.Time, s Snapshot[K]) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log.cursors = append(c.log.cursors, c)
	c.block = c.log.last
	c.position.Store(c.log.end.Load())
	c.addLocked(s, now)
	if c.log.ended {
		c.endAt = c.position.Load()
	}
}

// Resync delivers a snapshot behind all that waits, unless an earlier one or the end of the first list is pending.
// It should be without the keys of Keys. No record may be appended between the snapshot and the call.
func (c *Cursor[K]) Resync(now time.Time, s Snapshot[K]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.position.Load() != nowhere && c.snapshot == nil && c.endAt == never {
		c.addLocked(s, now)
	}
}

func (c *Cursor[K]) addLocked(s Snapshot[K], now time.Time) {
	if s.Len > 0 {
		c.snapshot = &pending[K]{Snapshot: s, before: c.log.end.Load(), since: now.Sub(c.log.start)}
	}
}

// Next removes the next record and stores it in r. If it returns false, none waits, r is as it was, and
// Ready receives once that has changed.
func (c *Cursor[K]) Next(r *Record[K]) bool {
	c.mu.Lock()
	if len(c.waits) > 0 {
		c.endWaitsLocked()
	}
	ok := c.behind && c.backlog.take(r) || c.readLocked(r)
	if c.asleep = !ok; !ok && c.behind && c.merging == WhenBehind {
		c.behind = false
		c.backlog.reset()
	}
	c.mu.Unlock()
	if !ok {
		c.log.mu.Lock()
		c.log.trimLocked()
		c.log.mu.Unlock()
	}
	return ok
}

// Pending returns the records of the log that wait, and the number after the last of them.
func (c *Cursor[K]) Pending() (all []Record[K], end uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.unreadLocked {
		all = append(all, *r)
	}
	return all, min(c.position.Load()+uint64(len(all)), c.log.end.Load())
}

// handled is closed.
var handled = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Handled returns a channel that is closed once the records with a number below end have been handled, and what was
// appended before them, which is when Next is called after the last of it. A caller that waits no more calls Forget.
func (c *Cursor[K]) Handled(end uint64) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asleep && c.snapshot == nil {
		return handled
	}
	w := handledWait{end, make(chan struct{})}
	c.waits = append(c.waits, w)
	return w.done
}

// Forget drops a wait: those for a handler that hangs must not pile up.
func (c *Cursor[K]) Forget(done <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = slices.DeleteFunc(c.waits, func(w handledWait) bool { return w.done == done })
}

// endWaitsLocked ends the waits for what has been handled. The handler is in no call.
func (c *Cursor[K]) endWaitsLocked() {
	handled := min(c.position.Load(), never) + 1 // waits for records before this have ended
	if s := c.snapshot; s != nil {
		handled = min(handled, s.before)
	}
	if e := c.backlog.root.next; e != &c.backlog.root {
		handled = min(handled, e.after)
	}
	c.waits = slices.DeleteFunc(c.waits, func(w handledWait) bool {
		if w.before >= handled {
			return false
		}
		close(w.done)
		return true
	})
}

// readLocked removes the next record of the log or of the snapshot.
func (c *Cursor[K]) readLocked(r *Record[K]) bool {
	at := c.position.Load()
	if s := c.snapshot; s != nil && at >= s.before {
		next, ok := s.Next()
		if s.Len--; !ok || s.Len == 0 {
			c.snapshot = nil
		}
		if ok {
			*r, r.Since = next, s.since
			return true
		}
	}
	switch {
	case at == c.endAt:
		*r = Record[K]{Kind: End}
		c.endAt = never
		return true
	case at >= c.log.end.Load():
		return false
	}
	if at-c.block.from == uint64(len(c.block.records)) {
		c.block = c.block.next
	}
	*r = c.block.records[at-c.block.from]
	c.position.Store(at + 1)
	return true
}

// appended moves records into the backlog if they are to be merged, after so many have been appended,
// and wakes the handler if it waits for records. It is called with the log's lock.
func (c *Cursor[K]) appended(count, live int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.merging == WhenBehind {
		c.behind = c.behind || c.changesLocked() > max(1024, 2*live)
	}
	if c.behind {
		most := moved + 2*count
		for r := (Record[K]{}); most > 0 && c.readLocked(&r); most-- {
			c.backlog.add(&r, c.position.Load())
		}
	}
	if count > 0 && c.asleep {
		c.asleep, c.handled = false, c.log.version
		select {
		case c.ready <- struct{}{}:
		default:
		}
	}
}

// changesLocked is how many changes wait.
func (c *Cursor[K]) changesLocked() int {
	n, at, end := len(c.backlog.byKey), c.position.Load(), c.log.end.Load()
	if at < end {
		n += int(end - at)
	}
	if c.snapshot != nil {
		n += c.snapshot.Len
	}
	return n
}

// Keys are the keys of the changes that wait, without those of a snapshot.
func (c *Cursor[K]) Keys() map[K]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := map[K]bool{}
	for r := range c.waitingLocked {
		keys[r.Key] = true
	}
	return keys
}

// waitingLocked are the changes that wait, oldest first, without those of a snapshot.
func (c *Cursor[K]) waitingLocked(yield func(r *Record[K]) bool) {
	for e := c.backlog.root.next; e != &c.backlog.root; e = e.next {
		if e.Kind != End && !yield(&e.Record) {
			return
		}
	}
	c.unreadLocked(yield)
}

// unreadLocked are the records of the log that wait.
func (c *Cursor[K]) unreadLocked(yield func(r *Record[K]) bool) {
	end, b := c.log.end.Load(), c.block
	for at := c.position.Load(); at < end; at++ {
		if at-b.from == uint64(len(b.records)) {
			b = b.next
		}
		if !yield(&b.records[at-b.from]) {
			return
		}
	}
}

// Status is what waits for a cursor.
type Status struct {
	// Changes is how many changes wait.
	Changes int
	// Oldest is since when the oldest of them has waited.
	Oldest time.Time
	// Merging says that they are merged by key.
	Merging bool
}

// Status returns what waits for the cursor.
func (c *Cursor[K]) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Changes: c.changesLocked(), Merging: c.behind}
	if s.Changes > 0 {
		s.Oldest = c.log.start.Add(c.oldestLocked())
	}
	return s
}

// HandledVersion returns whether everything was handled, else the store's version when it last was.
func (c *Cursor[K]) HandledVersion() (all bool, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asleep, c.handled
}

// oldestLocked is since when the oldest change has waited; there is one.
func (c *Cursor[K]) oldestLocked() time.Duration {
	s := c.snapshot
	if s == nil || c.position.Load() < s.before || len(c.backlog.byKey) > 0 {
		for r := range c.waitingLocked {
			return r.Since
		}
	}
	return s.since
}

// Ready receives after Next has returned false, once there may be another record.
func (c *Cursor[K]) Ready() <-chan struct{} { return c.ready }

// Close drops all that waits. Next returns nothing from then on.
func (c *Cursor[K]) Close() {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.log.cursors = slices.DeleteFunc(c.log.cursors, func(other *Cursor[K]) bool { return other == c })
	c.mu.Lock()
	c.behind, c.waits = false, nil
	c.block, c.snapshot, c.endAt = nil, nil, never
	c.backlog.reset()
	c.position.Store(nowhere)
	c.mu.Unlock()
	c.log.trimLocked()
}
