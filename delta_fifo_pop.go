package cache

import (
	"errors"
	"maps"
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// PopProcessFunc processes what Pop returns: a Deltas, of a DeltaFIFO.
type PopProcessFunc func(obj any, isInInitialList bool) error

// ProcessFunc is the PopProcessFunc of a Config.
type ProcessFunc func(obj any, isInInitialList bool) error

// ProcessBatchFunc processes deltas in their order. See DeltaFIFO.PopBatch.
type ProcessBatchFunc func(deltas []Delta, isInInitialList bool) error

// Queue is a ReflectorStore whose content is popped.
type Queue interface {
	ReflectorStore
	// Pop waits until something is pending, passes it to process without a lock, and returns it with process's error.
	Pop(PopProcessFunc) (any, error)
	// HasSynced is true once the first list has been processed, or if something else was put in before any list.
	HasSynced() bool
	HasSyncedChecker() DoneChecker
	// Close makes Pop return ErrFIFOClosed once nothing is pending.
	Close()
}

// QueueWithBatch is a Queue that also hands out many changes at once.
type QueueWithBatch interface {
	Queue
	// PopBatch waits and passes changes to processBatch or, if that is nil, one key's Deltas to processSingle.
	PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error
}

// KeyListerGetter has keys and the values under them.
type KeyListerGetter interface {
	KeyLister
	KeyGetter
}

// KeyLister lists its keys, in no order.
type KeyLister interface {
	ListKeys() []string
}

// KeyGetter returns the value under a key.
type KeyGetter interface {
	GetByKey(key string) (value any, exists bool, err error)
}

// errNoProcess is returned by Pop and PopBatch without a function.
var errNoProcess = errors.New("queue: no function to process with")

// popMode is how the consumer pops: as the call does that waits or was made last.
type popMode int

const (
	// notPopped keeps versions without a change for the first call.
	notPopped popMode = iota
	// popsKeys lets them pass.
	popsKeys
	// popsBatches has them handed out.
	popsBatches
)

// Pop waits until a change is pending, passes all changes of the key that has waited longest to process, as Deltas, and
// returns them with process's error. They are not handed out again, even if process fails or panics.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	if process == nil {
		return nil, errNoProcess
	}
	f.mu.Lock()
	if !f.awaitTurnLocked(popsKeys) {
		f.mu.Unlock()
		return nil, ErrFIFOClosed
	}
	var deltas any = f.log.takeKey()
	initial := !f.isSynced
	f.mu.Unlock()
	return deltas, f.handOut(func() error { return process(deltas, initial) })
}

// PopBatch waits as Pop does, and passes the pending changes to processBatch, up to the second change of a key. If the
// version has moved, the last delta is a Bookmark. A nil processBatch makes it Pop with processSingle.
func (f *DeltaFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	if processBatch == nil {
		_, err := f.Pop(processSingle)
		return err
	}
	f.mu.Lock()
	if !f.awaitTurnLocked(popsBatches) {
		f.mu.Unlock()
		return ErrFIFOClosed
	}
	initial := !f.isSynced
	deltas := f.log.takeBatch(initial)
	f.mu.Unlock()
	return f.handOut(func() error { return processBatch(deltas, initial) })
}

// awaitTurnLocked waits until it is the caller's turn and something is pending; false means that
// nothing ever will be. It gives the lock away meanwhile.
func (f *DeltaFIFO) awaitTurnLocked(mode popMode) bool {
	for {
		if !f.turn {
			f.mode = mode
			f.settleLocked()
		}
		switch {
		case !f.turn && (f.log.pending > 0 || mode == popsBatches && f.log.frontIsVersion()):
			f.turn = true
			return true
		case !f.turn && f.closed:
			return false
		}
		f.moved.Wait()
	}
}

// handOut calls process, without the lock, for the changes that the caller has removed from the log,
// and ends the caller's turn, also if process panics.
func (f *DeltaFIFO) handOut(process func() error) (err error) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if errors.Is(err, errDropped) {
			f.log.settle(pending)
		} else {
			f.log.settle(processed)
		}
		f.endTurnLocked()
	}()
	return process()
}

// endTurnLocked moves the version past what has been processed and makes way for the next turn.
// KnownObjects is given the version without the lock but within the turn: two versions never overlap.
func (f *DeltaFIFO) endTurnLocked() {
	defer func() {
		f.turn = false
		f.progressLocked()
	}()
	for f.log.pass(f.mode == popsKeys); f.reported != f.log.holds; f.log.pass(f.mode == popsKeys) {
		f.reported = f.log.holds
		if updater, ok := f.known.(ResourceVersionUpdater); ok {
			func(version string) {
				f.mu.Unlock()
				defer f.mu.Lock()
				updater.UpdateResourceVersion(version)
			}(f.reported)
		}
	}
}

// settleLocked lets a version pass that waits for nothing and is not to be handed out.
func (f *DeltaFIFO) settleLocked() {
	if !f.turn && f.mode == popsKeys && f.log.frontIsVersion() {
		f.turn = true
		f.endTurnLocked()
	}
}

// unlock ends a call that has put something in.
func (f *DeltaFIFO) unlock() {
	defer f.mu.Unlock()
	f.settleLocked()
	f.progressLocked()
}

// progressLocked does what follows from a change of the log, and wakes those who wait for one.
func (f *DeltaFIFO) progressLocked() {
	// Before the first Pop, a list without objects is as good as processed.
	if !f.isSynced && f.populated && (f.log.passedInitial() || f.mode == notPopped && len(f.log.newest) == 0) {
		f.isSynced = true
		close(f.synced)
	}
	f.moved.Broadcast()
}

// HasSynced is true once the first list, its deletions included, has been processed, or if something else was put in
// before any list.
func (f *DeltaFIFO) HasSynced() bool { return IsDone(f) }

// HasSyncedChecker returns the queue itself.
func (f *DeltaFIFO) HasSyncedChecker() DoneChecker { return f }

func (f *DeltaFIFO) Done() <-chan struct{} { return f.synced }

// processedVersion is the newest version of which everything that came before it
// has been processed.
func (f *DeltaFIFO) processedVersion() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.holds
}

// Close makes Pop and PopBatch return ErrFIFOClosed once nothing is pending.
func (f *DeltaFIFO) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.progressLocked()
}

func (f *DeltaFIFO) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// deltaLog has the changes of a DeltaFIFO in the order in which they came, until they have been
// processed. It is plain data: its owner guards it.
//
// A record is pending, then handed out, then processed, then passed. Batches are
// handed out from the front; Pop takes all records of one key, so it leaves gaps:
//
//	     head      version 7           end
//	      ▼             ▼               ▼
//	... │ A1 │ B1 │ A2 │ C1 │ A3 │ B2 │
//	      ▲─────────┘▲─────────┘            one key's chain
//
// The head passes what has been processed. A version holds once the head has reached it: so it never
// gets ahead of an object that came before it, whatever order the keys are popped in.
type deltaLog struct {
	records fifo[record]
	// newest has the number of the newest record of each key that is pending or handed out.
	newest map[table.Key]int64
	// pending counts the records that have not been handed out.
	pending int

	// out is the last record that is handed out; if ofKey, those of its key are.
	out   int64
	ofKey bool

	// versions are those that have not been passed; those before outVersions are handed out.
	versions    fifo[versionMark]
	outVersions int64
	// version is the last one that came, holds the last one that was passed.
	version, holds string

	// initialEnd is the number after the last record of the first list, 0 until that has ended.
	initialEnd int64
}

// record is a change with its key, and what was received before any transform. Many may wait: it is small.
type record struct {
	object any
	key    table.Key
	origin table.Origin
	// prev is how far before it the record before it of the same key is, 0 if none was in the log.
	prev uint32
	// kind is a place in deltaTypes.
	kind  uint8
	stage recordStage
}

var deltaTypes = [...]DeltaType{"", Added, Updated, Deleted, Replaced, Sync}

// kindDeleted is the place of Deleted in deltaTypes.
const kindDeleted = 3

func newRecord(kind DeltaType, object any, key table.Key, origin table.Origin) record {
	return record{object: object, key: key, origin: origin, kind: uint8(slices.Index(deltaTypes[:], kind))}
}

func (r *record) delta() Delta { return Delta{deltaTypes[r.kind], r.object} }

type recordStage uint8

const (
	pending recordStage = iota
	handedOut
	processed
)

// versionMark is a version that holds once every record before at has been processed.
type versionMark struct {
	at      int64
	version string
}

// fifo has items that are numbered from 1, without those before head.
type fifo[T any] struct {
	items []T
	// base is the number of items[0].
	base, head int64
}

// keptCapacity is up to how many items a fifo keeps the memory it has, however
// few it needs, so that ordinary traffic does not allocate.
const keptCapacity = 2048

func newFIFO[T any]() fifo[T] { return fifo[T]{base: 1, head: 1} }

// get returns an item. The pointer is good until the next one is added.
func (q *fifo[T]) get(at int64) *T { return &q.items[at-q.base] }

// end is the number of the next item.
func (q *fifo[T]) end() int64 { return q.base + int64(len(q.items)) }

func (q *fifo[T]) push(item T) { q.items = append(q.items, item) }

// drop removes the items before a number. It reports whether it has released the memory of a burst.
func (q *fifo[T]) drop(before int64) (released bool) {
	clear(q.items[q.head-q.base : before-q.base])
	q.head = before
	left := q.items[before-q.base:]
	if len(q.items)-len(left) <= len(left) {
		return false
	}
	if released = cap(q.items) > keptCapacity && cap(q.items) >= 4*len(left); released {
		q.items = append(make([]T, 0, 2*len(left)), left...)
	} else {
		q.items = q.items[:copy(q.items, left)]
		clear(left)
	}
	q.base = before
	return released
}

func newDeltaLog() deltaLog {
	return deltaLog{
		records: newFIFO[record](), versions: newFIFO[versionMark](), newest: map[table.Key]int64{},
	}
}

// find returns the newest record of a key that is pending or handed out, with its number, or 0 and nil.
func (l *deltaLog) find(key table.Key) (at int64, newest *record) {
	if at = l.newest[key]; at != 0 {
		newest = l.records.get(at)
	}
	return at, newest
}

// before is the number of the record before one of the same key, 0 if there is none.
func (l *deltaLog) before(at int64) int64 {
	if prev := l.records.get(at).prev; prev != 0 {
		return at - int64(prev)
	}
	return 0
}

// keysBefore yields the keys of changes that are pending or handed out, in their order; some come twice.
func (l *deltaLog) keysBefore(end int64, yield func(table.Key) bool) {
	for at := l.records.head; at < end; at++ {
		if r := l.records.get(at); r.stage != processed {
			yield(r.key)
		}
	}
}

// reserve makes room for many changes. Their memory is used if there is no other.
func (l *deltaLog) reserve(changes []record) {
	if cap(changes) > keptCapacity && len(l.records.items) == 0 {
		l.records.items, l.newest = changes[:0], make(map[table.Key]int64, cap(changes))
	}
}

// add appends a change. Of two deletions in a row the earlier one
// stays, unless it is a tombstone: the final state says more.
func (l *deltaLog) add(r record) {
	if at, before := l.find(r.key); before != nil {
		if before.stage == pending && before.kind == kindDeleted && r.kind == kindDeleted {
			if _, unknown := before.object.(DeletedFinalStateUnknown); unknown {
				before.object, before.key, before.origin = r.object, r.key, r.origin
			}
			return
		}
		r.prev = uint32(l.records.end() - at)
	}
	l.newest[r.key] = l.records.end()
	l.records.push(r)
	l.pending++
}

// setVersion notes that version holds once everything so far has been processed.
func (l *deltaLog) setVersion(version string) {
	if version == "" || version == l.version {
		return
	}
	l.version = version
	mark := versionMark{l.records.end(), version}
	if last := l.versions.end() - 1; last >= max(l.versions.head, l.outVersions) && l.versions.get(last).at == mark.at {
		*l.versions.get(last) = mark
		return
	}
	l.versions.push(mark)
}

// takeKey hands out all changes of the key that has waited longest. One must be pending.
func (l *deltaLog) takeKey() Deltas {
	first := l.records.head
	for l.records.get(first).stage != pending {
		first++
	}
	l.out, l.ofKey = l.newest[l.records.get(first).key], true
	n := 0
	for at := l.out; at >= first; at = l.before(at) {
		n++
	}
	l.pending -= n
	deltas := make(Deltas, n)
	for at := l.out; at >= first; at = l.before(at) {
		n--
		r := l.records.get(at)
		r.stage, deltas[n] = handedOut, r.delta()
	}
	return deltas
}

// takeBatch hands out the pending changes in the order in which they came, up to the second one of a key: those
// of the first list, if initial. If there is a version between or after them, the last delta is the newest one.
func (l *deltaLog) takeBatch(initial bool) []Delta {
	deltas, version := make([]Delta, 0, l.pending+1), ""
	l.out, l.ofKey, l.outVersions = l.records.head-1, false, l.versions.head
	for at := l.records.head; ; at++ {
		for ; l.outVersions < l.versions.end() && l.versions.get(l.outVersions).at <= at; l.outVersions++ {
			version = l.versions.get(l.outVersions).version
		}
		if at == l.records.end() || initial && at == l.initialEnd {
			break
		}
		if r := l.records.get(at); r.stage == pending {
			if prev := l.before(at); prev >= l.records.head && l.records.get(prev).stage == handedOut {
				break
			}
			r.stage = handedOut
			deltas = append(deltas, r.delta())
		}
		l.out = at
	}
	l.pending -= len(deltas)
	if version != "" {
		deltas = append(deltas, Delta{Bookmark, BookmarkInfo{ResourceVersion: version}})
	}
	return deltas
}

// settle marks the changes that are handed out as processed, and releases their objects, or as pending.
func (l *deltaLog) settle(stage recordStage) {
	for at, next := l.out, int64(0); at >= l.records.head; at = next {
		if next = at - 1; l.ofKey {
			next = l.before(at)
		}
		switch r := l.records.get(at); {
		case r.stage != handedOut:
		case stage == pending:
			r.stage = pending
			l.pending++
		default:
			if l.newest[r.key] == at {
				delete(l.newest, r.key)
			}
			*r = record{stage: processed}
		}
	}
	if stage == pending {
		l.outVersions = l.versions.head
	}
}

// pass moves the head past what has been processed, and the version with it. alone is true if versions
// need not be handed out first.
func (l *deltaLog) pass(alone bool) {
	head, end := l.records.head, l.records.end()
	for head < end && l.records.get(head).stage == processed {
		head++
	}
	if l.records.drop(head) {
		newest := make(map[table.Key]int64, len(l.newest))
		maps.Copy(newest, l.newest)
		l.newest = newest
	}
	at := max(l.versions.head, l.outVersions)
	for alone && at < l.versions.end() && l.versions.get(at).at <= head {
		at++
	}
	if at > l.versions.head {
		l.holds = l.versions.get(at - 1).version
		l.versions.drop(at)
	}
}

// frontIsVersion is true if everything before a version has been processed.
func (l *deltaLog) frontIsVersion() bool {
	return l.versions.head < l.versions.end() && l.versions.get(l.versions.head).at <= l.records.head
}

// passedInitial says whether the first list and its version have been passed.
func (l *deltaLog) passedInitial() bool {
	v := &l.versions
	return l.records.head >= l.initialEnd && (v.head == v.end() || v.get(v.head).at > l.initialEnd)
}
