package eventlog

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Cursor is the position of one handler in a log, and the records that wait only for that handler:
//
//	backlog, merged by key │ log from the position on, with a snapshot before one of its records
//
// Only the handler's goroutine calls Next and Resync. The other methods may be called concurrently.
type Cursor[K comparable] struct {
	log   *Log[K]
	mode  Merging
	ready chan struct{}

	// The atomics are changed under the lock. Status loads them without it.

	// position is the number of the next record to read.
	position atomic.Uint64
	// merging is set while pending records are merged, with Always from the beginning.
	merging  atomic.Bool
	snapshot atomic.Pointer[pendingSnapshot[K]]
	// since is the Since of the oldest change that the handler has not finished, idle if there is
	// none, 0 if unknown.
	since atomic.Int64
	// idleVersion is the store's version when the handler last stopped being idle, nil before that.
	idleVersion atomic.Pointer[string]

	mu sync.Mutex
	// block contains the record at position, or is full and ends just before it.
	block   *block[K]
	backlog backlog[K]
	// endAt is the position at which the first list ends, or noEnd.
	endAt uint64
	// waits are the calls of Handled that have not ended.
	waits []handledWait
}

// handledWait ends once all records with a number below end have been handled. Then done is closed.
type handledWait struct {
	end  uint64
	done chan struct{}
}

// Merging says when the pending records of a cursor are merged by key.
type Merging uint8

const (
	// WhenBehind merges once more than max(1024, 2 x live keys) records wait, until none waits.
	WhenBehind Merging = iota
	Always
	Never
)

// Snapshot is the content of the store after the last write whose records are in the log.
type Snapshot[K comparable] struct {
	// Len is the maximum number of records. Next returns the record of one more object: an Add, or
	// an Update to itself.
	Len  int
	Next func() (r Record[K], ok bool)
}

// pendingSnapshot is a snapshot that a cursor reads before the record with the number before.
type pendingSnapshot[K comparable] struct {
	Snapshot[K]
	// left is the maximum number of unread records.
	left   atomic.Int64
	before uint64
	since  time.Duration
	// joins is set for the snapshot of Join. It stands for the records before it, so Handled waits
	// until it is read.
	joins bool
}

const (
	// maxMoved is the maximum number of records that one append moves into a backlog, in addition
	// to twice the appended ones. The informer waits meanwhile.
	maxMoved = 2048
	// detached is the position of a cursor that does not read the log: before Join and after Close.
	// No log is that long.
	detached = math.MaxInt64
	// noEnd is the endAt of a cursor for which the end of the first list is not pending.
	noEnd = detached - 1
	// idle is the since of a cursor whose handler has handled everything and waits for Ready.
	idle = -1
)

// NewCursor returns a cursor that reads nothing until Join is called.
func (l *Log[K]) NewCursor(mode Merging) *Cursor[K] {
	c := &Cursor[K]{
		log:   l,
		mode:  mode,
		ready: make(chan struct{}, 1),
		endAt: noEnd,
	}
	c.merging.Store(mode == Always)
	c.position.Store(detached)
	c.backlog.reset()
	return c
}

// Join sets the cursor to the end of the log, after a snapshot, which may be empty, and after the
// end of the first list if that was appended before. No record may be appended between taking the
// snapshot and the call.
func (c *Cursor[K]) Join(now time.Time, s Snapshot[K]) {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	c.log.cursors = append(c.log.cursors, c)
	c.block = c.log.last
	c.position.Store(c.log.end.Load())
	c.setSnapshot(s, now, true)
	if c.log.ended {
		c.endAt = c.position.Load()
	}
}

// Resync delivers a snapshot after all pending records, unless an earlier snapshot or the end of
// the first list is pending. The snapshot should not contain the keys of Keys. No record may be
// appended between taking the snapshot and the call.
func (c *Cursor[K]) Resync(now time.Time, s Snapshot[K]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.position.Load() == detached {
		return
	}
	if c.snapshot.Load() == nil && c.endAt == noEnd {
		c.setSnapshot(s, now, false)
	}
}

func (c *Cursor[K]) setSnapshot(s Snapshot[K], now time.Time, joins bool) {
	if s.Len == 0 {
		return
	}
	p := &pendingSnapshot[K]{
		Snapshot: s,
		before:   c.log.end.Load(),
		since:    max(1, now.Sub(c.log.start)),
		joins:    joins,
	}
	p.left.Store(int64(s.Len))
	c.snapshot.Store(p)
}

// Next removes the next record and stores it in r. If none waits it returns false and leaves r
// unchanged, and Ready receives once there may be a record.
func (c *Cursor[K]) Next(r *Record[K]) bool {
	c.mu.Lock()
	if len(c.waits) > 0 {
		c.endWaitsLocked()
	}
	if c.backlog.pop(r) || c.readLocked(r) {
		c.since.Store(int64(r.Since))
		c.mu.Unlock()
		return true
	}
	c.since.Store(idle)
	if c.mode == WhenBehind && c.merging.Swap(false) {
		c.backlog.reset()
	}
	c.mu.Unlock()
	c.log.mu.Lock()
	c.log.trimLocked()
	c.log.mu.Unlock()
	return false
}

// closed is a closed channel.
var closed = newClosed()

func newClosed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// Handled returns a channel that is closed once all records that were appended before the call have
// been handled: when Next is called after the last of them. A caller that stops waiting must call
// Forget.
func (c *Cursor[K]) Handled() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.Load() == idle {
		return closed
	}
	w := handledWait{end: c.log.end.Load(), done: make(chan struct{})}
	c.waits = append(c.waits, w)
	return w.done
}

// Forget drops a wait, so that waits for a hanging handler do not accumulate.
func (c *Cursor[K]) Forget(done <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = slices.DeleteFunc(c.waits, func(w handledWait) bool { return w.done == done })
}

// endWaitsLocked ends the waits for records that have been handled. The handler is not in a call.
func (c *Cursor[K]) endWaitsLocked() {
	if s := c.snapshot.Load(); s != nil && s.joins {
		return
	}
	position := c.position.Load()
	oldest := c.backlog.oldest()
	c.waits = slices.DeleteFunc(c.waits, func(w handledWait) bool {
		if w.end > position {
			return false // a record in the log is pending
		}
		if oldest != nil && w.end >= oldest.position {
			return false // one in the backlog is
		}
		close(w.done)
		return true
	})
}

// readLocked removes the next record of the log or of the snapshot.
func (c *Cursor[K]) readLocked(r *Record[K]) bool {
	if c.readSnapshotLocked(r) {
		return true
	}
	at := c.position.Load()
	if at == c.endAt {
		*r = Record[K]{Kind: End}
		c.endAt = noEnd
		return true
	}
	if at >= c.log.end.Load() {
		return false
	}
	if c.block.endsAt(at) {
		c.block = c.block.next
	}
	*r = c.block.records[at-c.block.from]
	c.position.Store(at + 1)
	return true
}

// readSnapshotLocked removes the next record of the snapshot, if that is due.
func (c *Cursor[K]) readSnapshotLocked(r *Record[K]) bool {
	s := c.snapshot.Load()
	if s == nil || c.position.Load() < s.before {
		return false
	}
	next, ok := s.Next()
	if s.left.Add(-1) == 0 || !ok {
		c.snapshot.Store(nil)
	}
	if !ok {
		return false
	}
	*r = next
	r.Since = s.since
	return true
}

// appended is called under the log's lock after count records were appended at since, 0 for the end
// of the first list. It moves records into the backlog if they must be merged, and wakes an idle
// handler. version is the store's before the append.
func (c *Cursor[K]) appended(count, live int, since time.Duration, version *string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode == WhenBehind && c.changes() > max(1024, 2*live) {
		c.merging.Store(true)
	}
	if c.merging.Load() {
		c.mergeLocked(maxMoved + 2*count)
		c.log.trimLocked() // Next trims too, but a handler that hangs does not call it
	}
	if count == 0 || c.since.Load() != idle {
		return
	}
	c.idleVersion.Store(version)
	c.since.Store(int64(since))
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// mergeLocked moves at most so many records into the backlog.
func (c *Cursor[K]) mergeLocked(most int) {
	var r Record[K]
	for range most {
		if !c.readLocked(&r) {
			return
		}
		c.backlog.add(&r, c.position.Load())
	}
}

// changes returns the number of pending changes.
func (c *Cursor[K]) changes() int {
	at := c.position.Load() // first: appended advances it before it adds a record to the backlog
	count := c.backlog.changes.Load()
	end := c.log.end.Load()
	count += max(0, int64(end)-int64(at))
	if s := c.snapshot.Load(); s != nil {
		count += s.left.Load()
	}
	return int(count)
}

// Keys returns the keys of the pending changes, except those of a snapshot.
func (c *Cursor[K]) Keys() map[K]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := map[K]bool{}
	for key := range c.backlog.byKey {
		keys[key] = true
	}
	end := c.log.end.Load()
	b := c.block
	for at := c.position.Load(); at < end; at++ {
		if b.endsAt(at) {
			b = b.next
		}
		keys[b.records[at-b.from].Key] = true
	}
	return keys
}

// Status describes the pending changes of a cursor.
type Status struct {
	// Changes is the number of pending changes.
	Changes int
	// Oldest is when the oldest change was appended that the handler has not finished, zero if
	// there is none.
	Oldest time.Time
	// Merging is true while they are merged by key.
	Merging bool
}

// Status returns the cursor's status. It acquires no lock.
func (c *Cursor[K]) Status() Status {
	s := Status{Changes: c.changes(), Merging: c.merging.Load()}
	if since := c.since.Load(); since > 0 {
		s.Oldest = c.log.start.Add(time.Duration(since))
	}
	return s
}

// HandledVersion returns whether everything has been handled. If not, version is the store's
// version up to which everything has been, nil if there is none.
func (c *Cursor[K]) HandledVersion() (all bool, version *string) {
	return c.since.Load() == idle, c.idleVersion.Load()
}

// Ready receives after Next has returned false, once there may be another record.
func (c *Cursor[K]) Ready() <-chan struct{} { return c.ready }

// Close drops all pending records. Next returns false from then on.
func (c *Cursor[K]) Close() {
	c.log.mu.Lock()
	defer c.log.mu.Unlock()
	isThis := func(other *Cursor[K]) bool { return other == c }
	c.log.cursors = slices.DeleteFunc(c.log.cursors, isThis)
	c.mu.Lock()
	c.waits = nil
	c.block = nil
	c.endAt = noEnd
	c.backlog.reset()
	c.merging.Store(c.mode == Always)
	c.position.Store(detached)
	c.since.Store(min(c.since.Load(), 0))
	c.snapshot.Store(nil)
	c.mu.Unlock()
	c.log.trimLocked()
}
