package cache

import (
	"errors"
	"math"
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
type KeyLister interface{ ListKeys() []string }

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
		err := f.consume((*deltaLog).handOutKey, func(deltas []Delta, initial bool) error {
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
	return f.consume((*deltaLog).handOutBatch, processBatch)
}

// consume waits until something is pending and until no other call processes changes. Then it calls process, without the
// lock, with the changes that next returns. They count as processed when it returns, also after a panic.
func (f *DeltaFIFO) consume(next func(*deltaLog) []Delta, process ProcessBatchFunc) (err error) {
	f.consuming <- struct{}{}
	defer func() { <-f.consuming }()
	f.mu.Lock()
	for f.log.head == f.log.end() {
		if f.closed {
			f.mu.Unlock()
			return ErrFIFOClosed
		}
		f.pending.Wait()
	}
	deltas, initial := next(&f.log), !IsDone(f)
	f.mu.Unlock()
	defer func() { f.finish(errors.Is(err, errDropped)) }()
	if len(deltas) > 0 {
		err = process(deltas, initial)
	}
	return err
}

// finish removes the changes that were handed out, or makes them pending again if they were dropped. KnownObjects
// receives the version, without the lock, before HasSynced becomes true and before the next call of process.
func (f *DeltaFIFO) finish(dropped bool) {
	f.mu.Lock()
	f.log.remove(dropped)
	version := f.log.processed
	f.mu.Unlock()
	if updater, ok := f.known.(ResourceVersionUpdater); ok && version != f.reported {
		f.reported = version
		updater.UpdateResourceVersion(version)
	}
	f.mu.Lock()
	f.unlock()
}

// unlock marks the queue as synced if the first list has been processed, wakes the consumer, and releases mu.
func (f *DeltaFIFO) unlock() {
	defer f.mu.Unlock()
	// An empty list counts as processed although its version is pending.
	if !IsDone(f) && f.populated && (f.log.head >= f.log.initialEnd || len(f.log.newest) == 0) {
		close(f.synced)
	}
	f.pending.Signal()
}

// HasSynced is true once the first list, its deletions included, has been processed, or if something else was put in
// before any list.
func (f *DeltaFIFO) HasSynced() bool { return IsDone(f) }

// HasSyncedChecker returns the queue itself.
func (f *DeltaFIFO) HasSyncedChecker() DoneChecker { return f }

func (f *DeltaFIFO) Done() <-chan struct{} { return f.synced }

// processedVersion returns the newest version before which every change has been processed.
func (f *DeltaFIFO) processedVersion() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.processed
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

// deltaLog has the changes of a DeltaFIFO, and the versions between them, in the order in which they came. The queue's
// lock guards it.
//
// PopBatch removes records from the front. Pop removes all records of one key, which leaves blank records:
//
//	     head                          end
//	      ▼                             ▼
//	... │ A1 │ B1 │ A2 │ version 7 │ A3 │
//	      ▲─────────┘▲──────────────────┘   records of one key
//
// The head passes blank records. A version has been processed once the head has passed it, so it is never ahead of a
// change that came before it.
type deltaLog struct {
	// records are numbered: base is the first one, head the first that is not blank.
	records    []record
	base, head int64
	// newest has the number of the newest record of each key. It is nil until the first change.
	newest map[table.Key]int64
	// out has the numbers of the changes that are handed out. Versions numbered below outEnd are handed out too.
	out    []int64
	outEnd int64
	// version is the newest one, processed the newest that the head has passed.
	version, processed string
	// initialEnd is the number after the last record of the first list, 0 until that has ended.
	initialEnd int64
}

// record is a change, or a version. It is blank (zero) once it has been processed. A queue may hold many, so it is small.
type record struct {
	// object is a BookmarkInfo, without a key, if the record is a version.
	object any
	key    table.Key
	// origin is that of the object before any transform.
	origin table.Origin
	// prev is the distance to the previous record of the same key, farther than any record if there was none.
	prev uint32
	kind recordKind
	// out is true while the change is handed out.
	out bool
}

// recordKind is an index of recordKinds: a DeltaType would enlarge each record by a fifth.
type recordKind uint8

var recordKinds = [...]DeltaType{"", Added, Updated, Deleted, Replaced, Sync, Bookmark}

const recordDeleted, recordSync, recordBookmark recordKind = 3, 5, 6

func (c *change) record() record {
	kind := recordKind(slices.Index(recordKinds[:], c.kind))
	return record{object: c.object, key: c.key, origin: c.origin, kind: kind}
}

// keptCapacity is the number of records for which the log keeps its memory, so that ordinary traffic does not allocate.
const keptCapacity = 2048

// get returns a record. The pointer is valid until the next one is added.
func (l *deltaLog) get(number int64) *record { return &l.records[number-l.base] }

// end is the number of the next record.
func (l *deltaLog) end() int64 { return l.base + int64(len(l.records)) }

// reserve allocates memory for many changes, if the log is empty.
func (l *deltaLog) reserve(changes int) {
	if changes > keptCapacity && len(l.records) == 0 {
		l.records, l.newest = make([]record, 0, changes+1), make(map[table.Key]int64, changes)
	}
}

// add appends a change. Of two deletions in a row the first one stays, unless it is a tombstone: the final state replaces
// that.
func (l *deltaLog) add(r record) {
	r.prev = math.MaxUint32
	if number, queued := l.newest[r.key]; queued {
		last := l.get(number)
		if !last.out && last.kind == recordDeleted && r.kind == recordDeleted {
			if _, unknown := last.object.(DeletedFinalStateUnknown); unknown {
				last.object, last.key, last.origin = r.object, r.key, r.origin
			}
			return
		}
		r.prev = uint32(l.end() - number)
	}
	if l.newest == nil {
		l.newest = map[table.Key]int64{}
	}
	l.newest[r.key] = l.end()
	l.records = append(l.records, r)
}

// addVersion appends a version, unless it is the last one. It replaces a pending version directly before it, so that versions
// of a quiet source do not accumulate.
func (l *deltaLog) addVersion(version string) {
	if version == "" || version == l.version {
		return
	}
	if l.version = version; l.end() > max(l.head, l.outEnd) && l.get(l.end()-1).kind == recordBookmark {
		l.records = l.records[:len(l.records)-1]
	}
	l.records = append(l.records, record{object: BookmarkInfo{version}, kind: recordBookmark})
}

// handOutKey hands out all versions, and all changes of the key that has waited longest. It returns those, none if only
// versions are pending.
func (l *deltaLog) handOutKey() (deltas []Delta) {
	l.outEnd = l.end()
	if l.advanceHead(); l.head == l.end() {
		return nil
	}
	for number := l.newest[l.get(l.head).key]; number >= l.head; number -= int64(l.get(number).prev) {
		deltas = append(deltas, l.handOut(number))
	}
	slices.Reverse(deltas)
	return deltas
}

// handOutBatch hands out the pending records in their order, up to the second change of a key, and only those of the first
// list until that has been processed. It returns the changes and, as the last delta, the newest version.
func (l *deltaLog) handOutBatch() []Delta {
	var version any
	end := l.end()
	if l.head < l.initialEnd {
		end = l.initialEnd
	}
	deltas := make([]Delta, 0, min(end-l.head, int64(len(l.newest)+1)))
	for l.outEnd = l.head; l.outEnd < end; l.outEnd++ {
		r := l.get(l.outEnd)
		if prev := l.outEnd - int64(r.prev); prev >= l.head && l.get(prev).out {
			break
		}
		switch r.kind {
		case 0:
		case recordBookmark:
			version = r.object
		default:
			deltas = append(deltas, l.handOut(l.outEnd))
		}
	}
	if version != nil {
		deltas = append(deltas, Delta{Bookmark, version})
	}
	return deltas
}

// handOut hands out one change.
func (l *deltaLog) handOut(number int64) Delta {
	r := l.get(number)
	r.out, l.out = true, append(l.out, number)
	return Delta{recordKinds[r.kind], r.object}
}

// remove removes the changes that are handed out or, if they were dropped, makes them pending again.
func (l *deltaLog) remove(dropped bool) {
	for _, number := range l.out {
		r := l.get(number)
		if r.out = false; dropped {
			continue
		}
		if l.newest[r.key] == number {
			delete(l.newest, r.key)
		}
		*r = record{}
	}
	l.out = l.out[:0]
	if dropped {
		l.outEnd = l.head
	}
	l.advanceHead()
	if passed := int(l.head - l.base); 2*passed > len(l.records) {
		l.records, l.base = slices.Delete(l.records, 0, passed), l.head
		if cap(l.records) > keptCapacity && cap(l.records) >= 4*len(l.records) { // the memory of a burst
			l.records = append(make([]record, 0, 2*len(l.records)), l.records...)
		}
	}
}

// advanceHead moves the head past blank records, and past versions that are handed out, which then are processed.
func (l *deltaLog) advanceHead() {
	for ; l.head < l.end(); l.head++ {
		switch r := l.get(l.head); {
		case r.kind == recordBookmark && l.head < l.outEnd:
			l.processed = r.object.(BookmarkInfo).ResourceVersion
			*r = record{}
		case r.kind != 0:
			return
		}
	}
}
