// Popping: how a consumer receives the changes of a queue, and when they count as processed. In
// which order are changes handed out, and when is the queue synced?

package cache

import (
	"errors"
	"slices"

	"github.com/watchmirror/cache/internal/deltalog"
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
	// Pop waits until something is pending, passes it to process without a lock, and returns it
	// with process's error.
	Pop(PopProcessFunc) (any, error)
	// HasSynced is true once the first list has been processed, or if something else was put in
	// before any list.
	HasSynced() bool
	HasSyncedChecker() DoneChecker
	// Close makes Pop return ErrFIFOClosed once nothing is pending.
	Close()
}

// QueueWithBatch is a Queue that also hands out many changes at once.
type QueueWithBatch interface {
	Queue
	// PopBatch waits and passes changes to processBatch or, if that is nil, one key's Deltas to
	// processSingle.
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

// Pop waits until a change is pending, passes all changes of the key that has waited longest to
// process, as Deltas, and returns them with process's error. They are not handed out again, even if
// process fails or panics.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	if process == nil {
		return nil, errNoProcess
	}
	for {
		var popped any
		err := f.consume((*DeltaFIFO).handOutKeyLocked, func(deltas []Delta, initial bool) error {
			popped = Deltas(deltas)
			return process(popped, initial)
		})
		if popped != nil || err != nil {
			return popped, err
		}
	}
}

// PopBatch waits as Pop does, and passes the pending changes to processBatch, up to the second
// change of a key. If the version has moved, the last delta is a Bookmark. A nil processBatch makes
// it Pop with processSingle.
func (f *DeltaFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	if processBatch == nil {
		_, err := f.Pop(processSingle)
		return err
	}
	return f.consume((*DeltaFIFO).handOutBatchLocked, processBatch)
}

// handOutKeyLocked hands out all changes of the key that has waited longest, none if only versions
// are pending.
func (f *DeltaFIFO) handOutKeyLocked() []Delta {
	f.log.HandOutKey()
	return f.handedOutLocked(f.log.HandedOut())
}

// handOutBatchLocked hands out the changes for PopBatch.
func (f *DeltaFIFO) handOutBatchLocked() []Delta {
	version := f.log.HandOutBatch()
	if version == "" {
		return f.handedOutLocked(f.log.HandedOut())
	}
	deltas := f.handedOutLocked(f.log.HandedOut() + 1)
	return append(deltas, Delta{Bookmark, BookmarkInfo{version}})
}

// handedOutLocked returns what the log has handed out, with room for so many deltas.
func (f *DeltaFIFO) handedOutLocked(room int) []Delta {
	if room == 0 {
		return nil
	}
	deltas := make([]Delta, 0, room)
	for r := range f.log.EachHandedOut {
		deltas = append(deltas, Delta{deltaTypes[r.Kind], r.Object})
	}
	return deltas
}

// deltaTypes are the types of the log's kinds of changes: as a text, each would enlarge a record by
// a fifth.
var deltaTypes = [...]DeltaType{
	deltalog.Added:    Added,
	deltalog.Updated:  Updated,
	deltalog.Deleted:  Deleted,
	deltalog.Replaced: Replaced,
	deltalog.Sync:     Sync,
}

// record returns a change as the log keeps it.
func (c *change) record() deltalog.Record {
	kind := c.received.kind
	if c.prepared.deletes {
		kind = Deleted
	}
	return deltalog.Record{
		Object: c.prepared.object,
		Key:    c.prepared.key,
		Origin: c.prepared.origin,
		Kind:   deltalog.Kind(slices.Index(deltaTypes[:], kind)),
	}
}

// consume waits until something is pending and until no other call processes changes. Then it calls
// process, without the lock, with the changes that handOut returns. They count as processed when it
// returns, also after a panic.
func (f *DeltaFIFO) consume(
	handOut func(*DeltaFIFO) []Delta, process ProcessBatchFunc,
) (err error) {
	f.mu.Lock()
	for f.consuming || f.log.IsEmpty() {
		if f.closed && !f.consuming {
			f.mu.Unlock()
			return ErrFIFOClosed
		}
		f.changed.Wait()
	}
	f.consuming = true
	deltas := handOut(f)
	initial := !f.isSynced
	f.mu.Unlock()
	defer func() { f.finish(errors.Is(err, errDropped)) }()
	if len(deltas) > 0 {
		err = process(deltas, initial)
	}
	return err
}

// finish removes the changes that were handed out, or makes them pending again if they were
// dropped. KnownObjects receives the version, without the lock, before HasSynced becomes true and
// before the next call of process.
func (f *DeltaFIFO) finish(dropped bool) {
	f.mu.Lock()
	if dropped {
		f.log.Drop()
	} else {
		f.log.Finish()
	}
	version := f.log.Processed()
	if f.updater == nil || version == f.reported {
		f.endConsumingLocked()
		return
	}
	f.mu.Unlock()
	f.reported = version
	defer func() { // also after a panic of KnownObjects
		f.mu.Lock()
		f.endConsumingLocked()
	}()
	f.updater.UpdateResourceVersion(version)
}

// endConsumingLocked lets the next call of Pop or PopBatch process changes, and releases mu.
func (f *DeltaFIFO) endConsumingLocked() {
	f.consuming = false
	f.unlock()
}

// unlock marks the queue as synced if the first list has been processed, wakes waiting calls of Pop
// and PopBatch, and releases mu.
func (f *DeltaFIFO) unlock() {
	// An empty list counts as processed although its version is pending.
	if !f.isSynced && f.populated && (f.log.InitialProcessed() || !f.log.HasChanges()) {
		f.isSynced = true
		close(f.synced)
	}
	f.changed.Broadcast()
	f.mu.Unlock()
}

// HasSynced is true once the first list, its deletions included, has been processed, or if
// something else was put in before any list.
func (f *DeltaFIFO) HasSynced() bool { return IsDone(f) }

// HasSyncedChecker returns the queue itself.
func (f *DeltaFIFO) HasSyncedChecker() DoneChecker { return f }

func (f *DeltaFIFO) Done() <-chan struct{} { return f.synced }

// processedVersion returns the newest version before which every change has been processed.
func (f *DeltaFIFO) processedVersion() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Processed()
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
