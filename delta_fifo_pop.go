package cache

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/klog/v2"
	utiltrace "k8s.io/utils/trace"

	"github.com/watchmirror/cache/internal/table"
)

// PopProcessFunc processes what Pop returns. obj is a Deltas for a DeltaFIFO.
type PopProcessFunc func(obj any, isInInitialList bool) error

// ProcessFunc is the PopProcessFunc of a Config.
type ProcessFunc func(obj any, isInInitialList bool) error

// ProcessBatchFunc processes what PopBatch hands out: deltas in the order in which
// they arrived, at most one of each key, and, as the last, a Bookmark if the
// version moved. All of them are of the initial list, or none.
type ProcessBatchFunc func(deltas []Delta, isInInitialList bool) error

// Queue is a ReflectorStore whose content is popped.
type Queue interface {
	ReflectorStore

	// Pop waits until something is pending, or the queue is closed and empty
	// (ErrFIFOClosed), hands the oldest to process, without a lock, and returns
	// it with process's error. It is handed out once, whatever process returns.
	Pop(PopProcessFunc) (any, error)

	// HasSynced is true once everything of the first list has been processed,
	// or if something else was put in before any list.
	HasSynced() bool

	// HasSyncedChecker is HasSynced as something that can be waited for.
	HasSyncedChecker() DoneChecker

	// Close makes Pop return ErrFIFOClosed once nothing is pending.
	Close()
}

// QueueWithBatch is a Queue that also hands out many changes at once.
type QueueWithBatch interface {
	Queue

	// PopBatch is Pop for many changes: it blocks until some are pending and passes them to
	// processBatch or, if that is nil, one key's Deltas to processSingle.
	PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error
}

// A KeyListerGetter knows keys and the values under them.
type KeyListerGetter interface {
	KeyLister
	KeyGetter
}

// A KeyLister knows its keys.
type KeyLister interface {
	// ListKeys returns all keys, in no order.
	ListKeys() []string
}

// A KeyGetter knows the value under a key.
type KeyGetter interface {
	// GetByKey returns the value, or exists=false.
	GetByKey(key string) (value any, exists bool, err error)
}

// errNoProcess is returned by Pop and PopBatch without a function.
var errNoProcess = errors.New("queue: no function to process with")

const (
	// A Pop is traced if more than slowPopDepth keys are in the queue behind it and it takes
	// longer than slowPop. The numbers are client-go's.
	slowPopDepth = 10
	slowPop      = 100 * time.Millisecond
)

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

// Pop waits until a change is pending, or the queue is closed and empty
// (ErrFIFOClosed), and hands all changes of the key that has waited longest to
// process, as Deltas. It returns them with process's error. They are not handed
// out again, whatever process returns; a panic of process passes through.
//
// isInInitialList is true as long as HasSynced is false.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	if process == nil {
		return nil, errNoProcess
	}
	f.mu.Lock()
	if !f.awaitTurnLocked(popsKeys) {
		f.mu.Unlock()
		return nil, ErrFIFOClosed
	}
	key, taken := f.log.takeKey()
	initial, behind := !f.isSynced, len(f.log.newest)-1
	f.mu.Unlock()
	var deltas any = taken
	return deltas, f.handOut(true, func() error {
		if behind > slowPopDepth && klog.V(2).Enabled() {
			trace := utiltrace.New("DeltaFIFO Pop", utiltrace.Field{Key: "key", Value: key.String()},
				utiltrace.Field{Key: "keysBehind", Value: behind})
			defer trace.LogIfLong(slowPop)
		}
		return process(deltas, initial)
	})
}

// PopBatch waits as Pop does, and passes the pending changes to processBatch in the order
// in which they came, up to the second change of a key. If the version has moved, a
// Bookmark with it is the last of the deltas; it may be the only one. All of them
// came before the end of the first list, or none; isInInitialList says which.
//
// Without processBatch it is Pop with processSingle; without either, an error.
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
	records, version, initial := f.log.takeBatch(true)
	deltas := make([]Delta, 0, len(records)+1)
	for i := range records {
		if r := &records[i]; r.isOut() {
			deltas = append(deltas, r.Delta)
		}
	}
	f.mu.Unlock()
	if version != "" {
		deltas = append(deltas, Delta{Bookmark, BookmarkInfo{ResourceVersion: version}})
	}
	return f.handOut(true, func() error { return processBatch(deltas, initial) })
}

// popPending is PopBatch for our own controller: it hands out all that is pending
// and of the first list, or not of it, with several changes of a key, so that what
// a relist brought is never split. The changes are appended to into. KnownObjects is not
// given the version: process does that, in the write that the version belongs to. What process
// refuses with errDropped stays in the queue as if it had not been handed out.
func (f *DeltaFIFO) popPending(into []change, process func(changes []change, version string, initial bool) error) error {
	f.mu.Lock()
	if !f.awaitTurnLocked(popsBatches) {
		f.mu.Unlock()
		return ErrFIFOClosed
	}
	records, version, initial := f.log.takeBatch(false)
	into = slices.Grow(into, len(records))
	for i := range records {
		r := &records[i]
		if !r.isOut() {
			continue
		}
		c := change{kind: r.Type, object: r.Object, key: r.key, origin: r.origin}
		version := r.received
		if version == "" {
			version = r.origin.Version()
		}
		if c.says.received.ResourceVersion = version; version == "" {
			c.says.received = receivedOf(r.Object)
		}
		into = append(into, c)
	}
	f.mu.Unlock()
	return f.handOut(false, func() error { return process(into, version, initial) })
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
		case !f.turn && f.log.pending > 0:
			f.turn = true
			return true
		case !f.turn && f.closed:
			return false
		}
		f.waiting++
		f.moved.Wait()
		f.waiting--
	}
}

// handOut calls process, without the lock, for the changes that the caller has removed from the log,
// and ends the caller's turn, also if process panics.
func (f *DeltaFIFO) handOut(report bool, process func() error) (err error) {
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if errors.Is(err, errDropped) {
			f.log.settle(pending)
		} else {
			f.log.settle(processed)
		}
		f.endTurnLocked(report)
	}()
	return process()
}

// endTurnLocked moves the version past what has been processed and makes way for the next turn.
// KnownObjects is given the version, if report says so, without the lock but within the turn: two
// versions never overlap.
func (f *DeltaFIFO) endTurnLocked(report bool) {
	defer func() {
		f.turn, f.handling = false, false
		f.progressLocked()
	}()
	for f.log.pass(f.mode == popsKeys); f.reported != f.log.holds; f.log.pass(f.mode == popsKeys) {
		if f.reported = f.log.holds; report && f.updater != nil {
			func(version string) {
				f.mu.Unlock()
				defer f.mu.Lock()
				f.updater.UpdateResourceVersion(version)
			}(f.reported)
		}
	}
}

// settleLocked lets a version pass that waits for nothing and is not to be handed out.
func (f *DeltaFIFO) settleLocked() {
	if !f.turn && f.mode == popsKeys && f.log.frontIsVersion() {
		f.turn = true
		f.endTurnLocked(true)
	}
}

// unlock ends a call that has put something in.
func (f *DeltaFIFO) unlock() {
	defer f.mu.Unlock()
	f.settleLocked()
	if f.waiting > 0 || !f.isSynced || f.room != nil {
		f.progressLocked()
	}
}

// progressLocked does what follows from a change of the log, and wakes those who wait for one.
func (f *DeltaFIFO) progressLocked() {
	// A version of the first list counts only if it is to be handed out: before the first Pop, a
	// list without objects is as good as processed.
	processed := f.log.initial == 0 || f.mode == notPopped && len(f.log.newest) == 0
	if !f.isSynced && f.populated && processed {
		f.isSynced = true
		close(f.synced)
	}
	if f.room != nil && (f.closed || !f.crowdedLocked()) {
		close(f.room)
		f.room = nil
	}
	f.moved.Broadcast()
}

// HasSynced is true once everything of the first list has been processed, its
// deletions included, or if something else was put in before any list.
//
// An empty first list is synced at once; if PopBatch is waiting, once the list's
// version has been processed.
func (f *DeltaFIFO) HasSynced() bool { return IsDone(f) }

// HasSyncedChecker is the queue itself.
func (f *DeltaFIFO) HasSyncedChecker() DoneChecker { return f }

// Done returns a channel that is closed once HasSynced is true.
func (f *DeltaFIFO) Done() <-chan struct{} { return f.synced }

// processedVersion is the newest version of which everything that came before it
// has been processed.
func (f *DeltaFIFO) processedVersion() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.holds
}

// Close ends the queue: once nothing is pending, Pop and PopBatch return
// ErrFIFOClosed, also to callers that wait. Later changes are queued as before.
func (f *DeltaFIFO) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.progressLocked()
}

// IsClosed says whether Close has been called.
func (f *DeltaFIFO) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// attach says that a controller pops in this mode. With limited, the parts of a first list wait while
// more than one earlier part has not been processed, so that a source is read no faster than a store
// is written, until it is called without.
func (f *DeltaFIFO) attach(mode popMode, limited bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mode, f.limited = mode, limited
	f.progressLocked()
}

// awaitsHandler says that the consumer waits for a handler until its turn ends. Parts do not:
// API servers cut a list after 60 s. What waits for a handler is bounded by the list, and each object
// is the very one that the store will have.
func (f *DeltaFIFO) awaitsHandler() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.handling = true; f.room != nil {
		f.progressLocked()
	}
}

// crowdedLocked says whether a part has to wait.
func (f *DeltaFIFO) crowdedLocked() bool { return f.limited && f.log.parts > 1 && !f.handling }

// awaitRoom waits until there is room for a part. It fails if the context ends or
// the queue is closed first.
func (f *DeltaFIFO) awaitRoom(ctx context.Context) error {
	for {
		f.mu.Lock()
		room, closed, wait := f.room, f.closed, f.crowdedLocked()
		if wait && room == nil {
			room = make(chan struct{})
			f.room = room
		}
		f.mu.Unlock()
		switch {
		case !wait:
			return ctx.Err()
		case closed:
			return ErrFIFOClosed
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-room:
		}
	}
}

// deltaLog has the changes of a DeltaFIFO in the order in which they came, until they have been
// processed. It is plain data: its owner guards it.
//
// A record is pending, then handed out, then processed, then passed. Batches are
// handed out from the front; Pop takes all records of one key, so it leaves gaps:
//
//	     head                                            end
//	      ▼                                               ▼
//	... │ A1 │ B1 │ A2 │ (version 7) │ C1, version 8 │ A3 │
//	      ▲─────────┘▲────────────────────────────────┘         one key's chain
//
// The head passes a record when everything before it, and the record itself, has
// been processed; the version that the record bears then holds. So a version never gets ahead of an
// object that came before it, whatever order the keys are popped in.
type deltaLog struct {
	records []record
	// base is the number of records[0], head that of the first record that has not been passed.
	// Numbers start at 1.
	base, head int64
	// newest has the number of the newest record of each key that is pending or handed out.
	newest map[table.Key]int64
	// pending counts the records that have not been handed out.
	pending int

	// out is the last record that is handed out; if ofKey, those of its key are.
	out   int64
	ofKey bool

	// version is the last one that came, holds the last one that was passed.
	version, holds string
	// initial counts the records of the first list that have not been passed,
	// parts those that end a part.
	initial, parts int
}

// pendingDelta is a change with its key, and what was received before any transform.
type pendingDelta struct {
	Delta
	key      table.Key
	origin   table.Origin
	received string // the version; that of the origin or object if empty
}

// record is a change, a version, or both. One without a key is a version alone, or processed.
type record struct {
	pendingDelta
	version string
	// prev is the number of the record before it of the same key, 0 if none was in the log.
	prev  int64
	stage recordStage
	// more is true if a later record has this one as its prev.
	more bool
	// initial is true if the record came before the first list had ended.
	initial bool
	// partEnd is true for the last record of a part of a replacement.
	partEnd bool
}

type recordStage uint8

const (
	pending recordStage = iota
	handedOut
	processed
)

func (r *record) isVersion() bool { return r.key == table.Key{} }

// isOut says whether a change is handed out.
func (r *record) isOut() bool { return r.stage == handedOut && !r.isVersion() }

// keptCapacity is up to how many records the log keeps the memory it has, however
// few it needs: about 300 kB, so that ordinary traffic does not allocate.
const keptCapacity = 2048

func newDeltaLog() deltaLog { return deltaLog{base: 1, head: 1, newest: map[table.Key]int64{}} }

// get returns the record with a number, nil for 0. The pointer is good until the next one is added.
func (l *deltaLog) get(at int64) *record {
	if at == 0 {
		return nil
	}
	return &l.records[at-l.base]
}

// end is the number of the next record.
func (l *deltaLog) end() int64 { return l.base + int64(len(l.records)) }

// find returns the newest record of a key that is pending or handed out, with its number, or 0.
func (l *deltaLog) find(key table.Key) (at int64, newest *record) {
	at = l.newest[key]
	return at, l.get(at)
}

// keys are the keys of changes that are pending or handed out, in their order; some come twice.
func (l *deltaLog) keys() []table.Key {
	keys := make([]table.Key, 0, len(l.records))
	for at := l.head; at < l.end(); at++ {
		if r := l.get(at); r.stage != processed && !r.isVersion() {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// reserve makes room for many changes.
func (l *deltaLog) reserve(changes int) {
	if changes > keptCapacity && len(l.records) == 0 {
		l.records, l.newest = make([]record, 0, changes), make(map[table.Key]int64, changes)
	}
}

// add appends a change. at is what find says of its key. Of two deletions in a row the earlier one
// stays, unless it is a tombstone: the final state says more.
func (l *deltaLog) add(d *pendingDelta, at int64, initial bool) {
	if before := l.get(at); before != nil && before.stage == pending && before.Type == Deleted && d.Type == Deleted {
		if _, unknown := before.Object.(DeletedFinalStateUnknown); unknown {
			before.pendingDelta = *d
		}
		return
	}
	if at != 0 {
		l.get(at).more = true
	}
	l.newest[d.key] = l.end()
	r := l.push(initial)
	r.pendingDelta, r.prev = *d, at
}

func (l *deltaLog) push(initial bool) *record {
	l.records = append(l.records, record{initial: initial})
	l.pending++
	if initial {
		l.initial++
	}
	return &l.records[len(l.records)-1]
}

// setVersion notes that version holds once everything so far has been processed. It
// sits on the last record if that is pending, so that the two are handed out together.
func (l *deltaLog) setVersion(version string, initial bool) {
	if version == "" || version == l.version {
		return
	}
	l.version = version
	if l.end() > l.head && l.get(l.end()-1).stage == pending {
		l.get(l.end() - 1).version = version
		return
	}
	l.push(initial).version = version
}

// endPart makes the last record the end of a part, if any was added since.
func (l *deltaLog) endPart(since int64) {
	if l.end() > since {
		l.get(l.end() - 1).partEnd = true
		l.parts++
	}
}

// takeKey hands out all changes of the key that has waited longest. One must be pending.
func (l *deltaLog) takeKey() (key table.Key, deltas Deltas) {
	first := l.head
	for r := l.get(first); r.stage != pending || r.isVersion(); r = l.get(first) {
		first++
	}
	key = l.get(first).key
	if l.out, l.ofKey = first, true; l.get(first).more {
		l.out = l.newest[key]
	}
	n := 0
	for at := l.out; at >= first; at = l.get(at).prev {
		n++
	}
	deltas = make(Deltas, n)
	for at := l.out; at >= first; at = l.get(at).prev {
		n--
		r := l.get(at)
		r.stage, deltas[n] = handedOut, r.Delta
	}
	l.pending -= len(deltas)
	return key, deltas
}

// takeBatch hands out the pending changes in the order in which they came, up to the
// end of the first list if the first record belongs to that; with onePerKey, up
// to the second change of a key. Something must be pending. The records that are out are among
// those returned; version is the newest one with or between them.
func (l *deltaLog) takeBatch(onePerKey bool) (records []record, version string, initial bool) {
	first := int64(0)
	for at := l.head; at < l.end(); at++ {
		r := l.get(at)
		if r.stage == pending {
			if first == 0 {
				first, initial = at, r.initial
			}
			if r.initial != initial || onePerKey && r.prev >= first && l.get(r.prev).stage == handedOut {
				break
			}
			r.stage = handedOut
			l.pending--
		}
		if l.out = at; r.version != "" {
			version = r.version
		}
	}
	l.ofKey = false
	return l.records[l.head-l.base : l.out+1-l.base], version, initial
}

// settle marks the changes that are handed out as processed, and releases their objects, or as pending.
func (l *deltaLog) settle(stage recordStage) {
	if stage == processed && l.out-l.head > directly && l.out+1 == l.end() && !l.ofKey {
		clear(l.newest) // which takes less than to delete many keys
		return
	}
	for at := l.out; at >= l.head; {
		r := l.get(at)
		switch {
		case r.stage != handedOut && l.ofKey:
			return
		case r.stage != handedOut:
		case stage == pending:
			r.stage = pending
			l.pending++
		default:
			if r.stage = processed; !r.more {
				delete(l.newest, r.key)
			}
			if l.ofKey { // those of a batch are passed next
				r.pendingDelta = pendingDelta{}
			}
		}
		if at--; l.ofKey {
			at = r.prev
		}
	}
}

// pass moves the head past what has been processed: all that was handed out. alone is true if versions
// without a change need not be handed out first.
func (l *deltaLog) pass(alone bool) {
	from := l.head
	for ; l.head < l.end(); l.head++ {
		r := l.get(l.head)
		if r.stage == pending {
			if !alone || !r.isVersion() {
				break
			}
			l.pending--
		}
		if r.version != "" {
			l.holds = r.version
		}
		if r.initial {
			l.initial--
		}
		if r.partEnd {
			l.parts--
		}
	}
	clear(l.records[from-l.base : l.head-l.base])
	passed := int(l.head - l.base)
	left := l.records[passed:]
	switch {
	case passed <= len(left):
		return
	case cap(l.records) > keptCapacity && cap(l.records) >= 4*len(left): // the memory of a burst is released
		l.records = append(make([]record, 0, 2*len(left)), left...)
		newest := make(map[table.Key]int64, len(l.newest))
		maps.Copy(newest, l.newest)
		l.newest = newest
	default:
		l.records = l.records[:copy(l.records, left)]
		clear(left)
	}
	l.base = l.head
}

// frontIsVersion is true if a version without a change would be handed out next.
func (l *deltaLog) frontIsVersion() bool {
	return l.head < l.end() && l.get(l.head).stage == pending && l.get(l.head).isVersion()
}
