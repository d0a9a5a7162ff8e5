package cache

import (
	"errors"
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

// Pop waits until a change is pending, passes all changes of the key that has waited longest to process, as Deltas, and
// returns them with process's error. They are not handed out again, even if process fails or panics.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	if process == nil {
		return nil, errNoProcess
	}
	for {
		var popped any
		err := f.handOut((*deltaLog).takeKey, func(deltas []Delta, initial bool) error {
			popped = Deltas(deltas)
			return process(popped, initial)
		})
		if popped != nil || err != nil {
			return popped, err
		}
	}
}

// PopBatch waits as Pop does, and passes the pending changes to processBatch, up to the second change of a key. If the
// version has moved, the last delta is a Bookmark. A nil processBatch makes it Pop with processSingle.
func (f *DeltaFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	if processBatch == nil {
		_, err := f.Pop(processSingle)
		return err
	}
	return f.handOut((*deltaLog).takeBatch, processBatch)
}

// handOut waits for its turn, and until something is pending, and calls process for what take has handed out, without the lock.
// It ends the turn also if process panics.
func (f *DeltaFIFO) handOut(take func(*deltaLog) []Delta, process ProcessBatchFunc) (err error) {
	f.mu.Lock()
	for f.turn || f.log.head == f.log.end() && len(f.log.versions) == 0 {
		if !f.turn && f.closed {
			f.mu.Unlock()
			return ErrFIFOClosed
		}
		f.moved.Wait()
	}
	f.turn = true
	deltas, initial := take(&f.log), !IsDone(f)
	f.mu.Unlock()
	defer func() { f.endTurn(errors.Is(err, errDropped)) }()
	if len(deltas) > 0 {
		err = process(deltas, initial)
	}
	return err
}

// endTurn moves the version past what has been processed, unless that was dropped, and makes way for the next turn.
// KnownObjects is given the version without the lock but within the turn: two versions never overlap.
func (f *DeltaFIFO) endTurn(dropped bool) {
	f.mu.Lock()
	f.log.settle(dropped)
	version := f.log.holds
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.turn = false
		f.unlock()
	}()
	if updater, ok := f.known.(ResourceVersionUpdater); ok && version != f.reported {
		f.reported = version
		updater.UpdateResourceVersion(version)
	}
}

// unlock does what follows from a change of the log, and wakes those who wait for one.
func (f *DeltaFIFO) unlock() {
	defer f.mu.Unlock()
	// A list without objects is as good as processed.
	if !IsDone(f) && f.populated && (f.log.head >= f.log.initialEnd || len(f.log.newest) == 0) {
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
	defer f.unlock()
	f.closed = true
}

func (f *DeltaFIFO) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// deltaLog has the changes of a DeltaFIFO in the order in which they came, until they have been processed. It is plain
// data: its owner guards it.
//
// Batches are handed out from the front; Pop takes all records of one key, so it leaves gaps:
//
//	     head      version 7           end
//	      ▼             ▼               ▼
//	... │ A1 │ B1 │ A2 │ C1 │ A3 │ B2 │
//	      ▲─────────┘▲─────────┘            one key's chain
//
// The head passes what has been processed. A version holds once the head has reached it: so it never
// gets ahead of an object that came before it, whatever order the keys are popped in.
type deltaLog struct {
	// records are numbered: base is the first one, head the first that is not processed.
	records    []record
	base, head int64
	// newest has the number of the newest record of each key, nil until the first change.
	newest map[table.Key]int64
	// out are the records that are handed out, and outVersions how many of versions are.
	out         []int64
	versions    []versionMark
	outVersions int
	// version is the last one that came, holds the last one that holds.
	version, holds string
	// initialEnd is the number after the last record of the first list, 0 until that has ended.
	initialEnd int64
}

// record is a change with its key, and what was received before any transform. Many may wait: it is small. It is zero once
// it has been processed.
type record struct {
	object any
	key    table.Key
	origin table.Origin
	// prev is how far before it the record before it of the same key is, 0 if none was in the log.
	prev uint32
	kind recordKind
	// out is true while it is handed out.
	out bool
}

// recordKind is a place in recordKinds. A DeltaType is a tenth of a record larger.
type recordKind uint8

var recordKinds = [...]DeltaType{"", Added, Updated, Deleted, Replaced, Sync}

const recordDeleted, recordSync recordKind = 3, 5

func (c *change) record() record {
	kind := recordKind(slices.Index(recordKinds[:], c.kind))
	return record{object: c.object, key: c.key, origin: c.origin, kind: kind}
}

// versionMark is a version that holds once every record before at has been processed.
type versionMark struct {
	at      int64
	version string
}

// keptCapacity is for how many records the log keeps its memory, however
// few it needs, so that ordinary traffic does not allocate.
const keptCapacity = 2048

// get returns a record. The pointer is good until the next one is added.
func (l *deltaLog) get(at int64) *record { return &l.records[at-l.base] }

// end is the number of the next record.
func (l *deltaLog) end() int64 { return l.base + int64(len(l.records)) }

// find returns the newest record of a key, or nil.
func (l *deltaLog) find(key table.Key) *record {
	if at, found := l.newest[key]; found {
		return l.get(at)
	}
	return nil
}

// before is the number of the record before one of the same key, less than head if that has been processed.
func (l *deltaLog) before(at int64) int64 {
	if prev := l.get(at).prev; prev > 0 {
		return at - int64(prev)
	}
	return -1
}

// reserve makes room for many changes, if there are none.
func (l *deltaLog) reserve(changes int) {
	if changes > keptCapacity && len(l.records) == 0 {
		l.records, l.newest = make([]record, 0, changes), make(map[table.Key]int64, changes)
	}
}

// add appends a change. Of two deletions in a row the earlier one
// stays, unless it is a tombstone: the final state says more.
func (l *deltaLog) add(r record) {
	if at, queued := l.newest[r.key]; queued {
		before := l.get(at)
		if !before.out && before.kind == recordDeleted && r.kind == recordDeleted {
			if _, unknown := before.object.(DeletedFinalStateUnknown); unknown {
				before.object, before.key, before.origin = r.object, r.key, r.origin
			}
			return
		}
		r.prev = uint32(l.end() - at)
	}
	if l.newest == nil {
		l.newest = map[table.Key]int64{}
	}
	l.newest[r.key] = l.end()
	l.records = append(l.records, r)
}

// setVersion notes that version holds once everything so far has been processed.
func (l *deltaLog) setVersion(version string) {
	if version == "" || version == l.version {
		return
	}
	l.version = version
	if last := len(l.versions) - 1; last >= l.outVersions && l.versions[last].at == l.end() {
		l.versions[last].version = version
		return
	}
	l.versions = append(l.versions, versionMark{l.end(), version})
}

// takeKey hands out all changes of the key that has waited longest. There are none if only versions are pending.
func (l *deltaLog) takeKey() (deltas []Delta) {
	l.outVersions = len(l.versions)
	if l.head == l.end() {
		return nil
	}
	for at := l.newest[l.get(l.head).key]; at >= l.head; at = l.before(at) {
		deltas = append(deltas, l.take(at))
	}
	slices.Reverse(deltas)
	return deltas
}

// takeBatch hands out the pending changes in the order in which they came, up to the second one of a key: those
// of the first list, until that has been processed. If there is a version between or after them, the last delta is the newest one.
func (l *deltaLog) takeBatch() []Delta {
	at, end, version := l.head, l.end(), ""
	if at < l.initialEnd {
		end = l.initialEnd
	}
	deltas := make([]Delta, 0, end-at+1)
	for ; at < end; at++ {
		if prev := l.before(at); prev >= l.head && l.get(prev).out {
			break
		}
		if l.get(at).kind != 0 {
			deltas = append(deltas, l.take(at))
		}
	}
	for l.outVersions = 0; l.outVersions < len(l.versions) && l.versions[l.outVersions].at <= at; l.outVersions++ {
		version = l.versions[l.outVersions].version
	}
	if version != "" {
		deltas = append(deltas, Delta{Bookmark, BookmarkInfo{ResourceVersion: version}})
	}
	return deltas
}

// take hands out one change.
func (l *deltaLog) take(at int64) Delta {
	r := l.get(at)
	r.out, l.out = true, append(l.out, at)
	return Delta{recordKinds[r.kind], r.object}
}

// settle removes the changes that are handed out, and moves head and version past it. What was dropped is pending again.
func (l *deltaLog) settle(dropped bool) {
	for _, at := range l.out {
		r := l.get(at)
		if r.out = false; dropped {
			continue
		}
		if l.newest[r.key] == at {
			delete(l.newest, r.key)
		}
		*r = record{}
	}
	l.out = l.out[:0]
	l.pass()
	for !dropped && l.outVersions > 0 && l.versions[0].at <= l.head {
		l.holds, l.versions, l.outVersions = l.versions[0].version, l.versions[1:], l.outVersions-1
	}
	l.outVersions = 0
}

// pass moves the head past what has been processed.
func (l *deltaLog) pass() {
	for l.head < l.end() && l.get(l.head).kind == 0 {
		l.head++
	}
	left := l.records[l.head-l.base:]
	switch {
	case len(l.records) <= 2*len(left):
		return
	case cap(l.records) > keptCapacity && cap(l.records) >= 4*len(left): // the memory of a burst
		l.records = append(make([]record, 0, 2*len(left)), left...)
	default:
		l.records = l.records[:copy(l.records, left)]
		clear(left)
	}
	l.base = l.head
}
