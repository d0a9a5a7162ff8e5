package cache

import (
	"errors"
	"time"

	"k8s.io/klog/v2"
	utiltrace "k8s.io/utils/trace"
)

// errNoProcess is returned by Pop and PopBatch if there is nobody to hand to.
var errNoProcess = errors.New("queue: no function to process with")

const (
	// A Pop is traced if more keys than slowPopDepth wait behind it and it takes
	// longer than slowPop: it holds them back then. The numbers are client-go's.
	slowPopDepth = 10
	slowPop      = 100 * time.Millisecond
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
	out, taken, behind := f.nextKey()
	if taken == nil {
		return nil, ErrFIFOClosed
	}
	var deltas any = taken
	// Without this level the trace would say nothing, whatever it finds.
	if behind > slowPopDepth && klog.V(2).Enabled() {
		process = traced(process, out.key.String(), behind)
	}
	err := f.handOutKey(out, deltas, process)
	return deltas, err
}

func traced(process PopProcessFunc, key string, behind int) PopProcessFunc {
	return func(obj any, initial bool) error {
		trace := utiltrace.New("DeltaFIFO Pop", utiltrace.Field{Key: "key", Value: key},
			utiltrace.Field{Key: "keysBehind", Value: behind})
		defer trace.LogIfLong(slowPop)
		return process(obj, initial)
	}
}

// PopBatch waits likewise, and hands what is pending to processBatch in the order
// in which it came, up to the second change of a key. If the version has moved, a
// Bookmark with it is the last of the deltas; it may be the only one. All of them
// came before the end of the first list, or none; isInInitialList says which.
//
// Without processBatch it is Pop with processSingle; without either, an error.
func (f *DeltaFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	if processBatch == nil {
		_, err := f.Pop(processSingle)
		return err
	}
	out, deltas, ok := f.nextBatch()
	if !ok {
		return ErrFIFOClosed
	}
	return f.handOut(out, true, func() error { return processBatch(deltas, out.initial) })
}

// popPending is PopBatch for our own controller: it hands out all that is pending
// and of the first list, or not of it, with several changes of a key, so that what
// a relist brought is never split. It does not tell KnownObjects of the version;
// process does, in the write that the version belongs to. What process refuses
// with errDropped stays in the queue as if it had not been handed out; a store that
// is not ours keeps what it had been given of it.
func (f *DeltaFIFO) popPending(process func(batch) error) error {
	out, changes, ok := f.nextPending()
	if !ok {
		return ErrFIFOClosed
	}
	return f.handOut(out, false, func() error {
		return process(batch{changes: changes, version: out.version, initial: out.initial})
	})
}

// consumption is how the consumer takes things out: as the call does that waits
// or was made last. With several consumers it is that of the last to look.
type consumption int

const (
	// notYet keeps versions that were told alone for the first call to come.
	notYet consumption = iota
	// takesKeys lets them pass.
	takesKeys
	// takesBatches has them handed out.
	takesBatches
)

// nextKey waits for the caller's turn and takes out all of a key. It returns how many
// keys wait behind it; no deltas if the queue is closed and empty.
func (f *DeltaFIFO) nextKey() (out handout, deltas Deltas, behind int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaitTurnLocked(takesKeys) {
		return handout{}, nil, 0
	}
	out, deltas = f.log.takeKey()
	out.initial = !f.isSynced
	return out, deltas, f.log.keys
}

// nextBatch is nextKey for PopBatch.
func (f *DeltaFIFO) nextBatch() (out handout, deltas []Delta, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaitTurnLocked(takesBatches) {
		return handout{}, nil, false
	}
	out = f.log.takeBatch(true)
	return out, f.log.deltasOf(out), true
}

// nextPending is nextKey for popPending.
func (f *DeltaFIFO) nextPending() (out handout, changes []queued, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaitTurnLocked(takesBatches) {
		return handout{}, nil, false
	}
	out = f.log.takeBatch(false)
	return out, f.log.changesOf(out), true
}

// awaitTurnLocked waits until it is the caller's turn, which the caller has then, and
// something is there for it; false means that nothing ever will be. The caller holds
// mu, which is given away meanwhile.
func (f *DeltaFIFO) awaitTurnLocked(how consumption) bool {
	for !f.readyLocked(how) {
		if !f.turn && f.closed {
			return false
		}
		f.waiting++
		f.moved.Wait()
		f.waiting--
	}
	f.turn = true
	return true
}

// readyLocked says whether there is something to take out, for a consumer that
// takes it so. The caller holds mu.
func (f *DeltaFIFO) readyLocked(how consumption) bool {
	if !f.turn {
		f.consumption = how
		f.settleLocked()
	}
	return !f.turn && f.log.pending > 0
}

// handOut has process handle what was taken out of the log, without the lock, and
// notes that it has been. The caller has the turn, and has lost it afterwards.
func (f *DeltaFIFO) handOut(out handout, tell bool, process func() error) (err error) {
	// Deferred, for process may panic: what it was handed is gone then, too.
	defer func() { f.handedOut(out, tell, err) }()
	return process()
}

// handOutKey is handOut for a Pop.
func (f *DeltaFIFO) handOutKey(out handout, deltas any, process PopProcessFunc) (err error) {
	defer func() { f.handedOut(out, true, err) }()
	return process(deltas, out.initial)
}

// handedOut ends the turn of a caller that has handed something out, with an answer.
func (f *DeltaFIFO) handedOut(out handout, tell bool, answer error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if answer != nil && errors.Is(answer, errDropped) {
		f.log.putBack()
	} else {
		f.log.forget(out)
	}
	f.endTurnLocked(tell)
}

// endTurnLocked moves the version past what has been processed, tells KnownObjects
// of it if it is to be told here, and makes way for the next turn. KnownObjects is
// told without the lock but within the turn: two versions never overtake each
// other. The caller holds mu and has the turn.
func (f *DeltaFIFO) endTurnLocked(tell bool) {
	defer func() {
		f.turn, f.telling = false, false
		f.progressLocked()
	}()
	for {
		f.log.pass(f.consumption == takesKeys)
		if f.told == f.log.holds {
			return
		}
		f.told = f.log.holds
		if tell && f.updater != nil {
			f.tellLocked()
		}
	}
}

// tellLocked gives the lock away for the call. The caller holds mu.
func (f *DeltaFIFO) tellLocked() {
	version := f.told
	f.mu.Unlock()
	defer f.mu.Lock()
	f.updater.UpdateResourceVersion(version)
}

// settleLocked lets versions pass that wait for nothing: nothing is pending
// before them, nothing is handed out, and the consumer does not take versions. The
// caller holds mu, which is given away in between.
func (f *DeltaFIFO) settleLocked() {
	if f.unsettledLocked() {
		f.turn = true
		f.endTurnLocked(true)
	}
}

func (f *DeltaFIFO) unsettledLocked() bool {
	return !f.turn && f.consumption == takesKeys && f.log.frontIsVersion()
}

// unlock ends a call that has put something in.
func (f *DeltaFIFO) unlock() {
	if f.waiting == 0 && f.isSynced && f.room == nil && !f.unsettledLocked() {
		// Nothing follows from it, and nobody is to be told: most changes come
		// so while the consumer is busy.
		f.mu.Unlock()
		return
	}
	defer f.mu.Unlock()
	f.settleLocked()
	f.progressLocked()
}

// progressLocked says what follows from a change of the log, and wakes everybody
// who waits for one. The caller holds mu.
func (f *DeltaFIFO) progressLocked() {
	if !f.isSynced && f.populated && f.firstListProcessedLocked() {
		f.isSynced = true
		close(f.synced)
	}
	f.makeRoomLocked()
	f.moved.Broadcast()
}

// makeRoomLocked wakes the part that waits for room, if there is room. The caller
// holds mu.
func (f *DeltaFIFO) makeRoomLocked() {
	if f.room != nil && f.roomLocked() {
		close(f.room)
		f.room = nil
	}
}

// firstListProcessedLocked says whether everything of the first list has been
// processed. Its version counts only where somebody is to take it: before the
// first Pop, a list without objects is as good as processed. The caller holds mu.
func (f *DeltaFIFO) firstListProcessedLocked() bool {
	return f.log.initial == 0 || f.consumption == notYet && f.log.keys == 0
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

// hasPending says whether there is something to take out.
func (f *DeltaFIFO) hasPending() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.pending > 0
}

// processedVersion is the newest version of which everything that came before it
// has been processed.
func (f *DeltaFIFO) processedVersion() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.holds
}

// Close ends the queue: once nothing is pending, Pop and PopBatch return
// ErrFIFOClosed, those that wait included. What is put in afterwards is taken as
// before.
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

// attach tells the queue of a consumer of our own, before anything comes in: how it
// takes things out. detach tells that it takes nothing out any more.
func (f *DeltaFIFO) attach(how consumption) (detach func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.consumption = how
	return func() { f.limitParts(false) }
}
