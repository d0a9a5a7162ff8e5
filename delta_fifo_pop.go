package cache

import (
	"context"
	"errors"
	"time"

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
	behind := 0
	out, ok := f.next(takesKeys, func() handout {
		out := f.log.takeKey()
		out.initial = !f.isSynced
		behind = len(f.log.items)
		return out
	})
	if !ok {
		return nil, ErrFIFOClosed
	}
	deltas := Deltas(out.deltas(0))
	err := f.handOut(out, true, func() error {
		if behind > slowPopDepth {
			trace := utiltrace.New("DeltaFIFO Pop", utiltrace.Field{Key: "key", Value: out.changes[0].key},
				utiltrace.Field{Key: "keysBehind", Value: behind})
			defer trace.LogIfLong(slowPop)
		}
		return process(deltas, out.initial)
	})
	return deltas, err
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
	out, ok := f.next(takesBatches, func() handout { return f.log.takeBatch(true) })
	if !ok {
		return ErrFIFOClosed
	}
	deltas := out.deltas(1)
	if out.version != "" {
		deltas = append(deltas, Delta{Bookmark, BookmarkInfo{ResourceVersion: out.version}})
	}
	return f.handOut(out, true, func() error { return processBatch(deltas, out.initial) })
}

// popPending is PopBatch for our own controller: it hands out all that is pending
// and of the first list, or not of it, with several changes of a key, so that what
// a relist brought is never split. It does not tell KnownObjects of the version;
// process does, in the write that the version belongs to. What process refuses
// with errDropped stays in the queue as if it had not been handed out.
func (f *DeltaFIFO) popPending(process func(batch) error) error {
	out, ok := f.next(takesBatches, func() handout { return f.log.takeBatch(false) })
	if !ok {
		return ErrFIFOClosed
	}
	return f.handOut(out, false, func() error {
		return process(batch{changes: out.changes, version: out.version, initial: out.initial})
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

// next waits until it is the caller's turn and something is there for it, or
// nothing ever will be, which makes ok false. It takes something out of the log
// and has the turn then.
func (f *DeltaFIFO) next(how consumption, take func() handout) (out handout, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.readyLocked(how) {
		if !f.turn && f.closed {
			return handout{}, false
		}
		f.moved.Wait()
	}
	out = take()
	f.turn = true
	f.inFlight = make(map[string]change, len(out.changes))
	for _, c := range out.changes {
		f.inFlight[c.key] = c
	}
	return out, true
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
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.inFlight = nil
		if errors.Is(err, errDropped) {
			f.log.putBack(out.sequences)
		} else {
			f.log.forget(out.sequences)
		}
		f.endTurnLocked(tell)
	}()
	return process()
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
	updater, told := f.known.(ResourceVersionUpdater)
	for {
		f.log.pass(f.consumption == takesKeys)
		if f.told == f.log.holds {
			return
		}
		f.told = f.log.holds
		if tell && told {
			f.tellLocked(updater)
		}
	}
}

// tellLocked gives the lock away for the call. The caller holds mu.
func (f *DeltaFIFO) tellLocked(updater ResourceVersionUpdater) {
	version := f.told
	f.mu.Unlock()
	defer f.mu.Lock()
	updater.UpdateResourceVersion(version)
}

// settleLocked lets versions pass that wait for nothing: nothing is pending
// before them, nothing is handed out, and the consumer does not take versions. The
// caller holds mu, which is given away in between.
func (f *DeltaFIFO) settleLocked() {
	if !f.turn && f.consumption == takesKeys && f.log.frontIsVersion() {
		f.turn = true
		f.endTurnLocked(true)
	}
}

// unlock ends a call that has put something in.
func (f *DeltaFIFO) unlock() {
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
	return f.log.initial == 0 || f.consumption == notYet && len(f.log.items) == 0
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
// takes things out, and who holds back what it could not apply. detach tells that it
// takes nothing out any more.
func (f *DeltaFIFO) attach(how consumption, holders ...holder) (detach func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.consumption = how
	f.holders = append(f.holders, holders...)
	return func() { f.limitParts(false) }
}

// limitParts says whether the parts of a first list are to wait while more than one
// earlier part has not been processed, so that a source is read no faster than a
// store takes in what it sends.
func (f *DeltaFIFO) limitParts(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limited = on
	f.progressLocked()
}

// awaitsHandler says whether the consumer, which has the turn, waits for a handler to
// return: its own, or another's with which it takes turns. Parts do not wait for that:
// API servers cut a list after 60 s, which all calls of a handler together may well
// exceed, and then it is made again, from its start. So what waits for a handler is up
// to the whole list; it is bounded by what the store will hold: what is queued has been
// transformed, and is the very object that the store is given.
func (f *DeltaFIFO) awaitsHandler(does bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.telling = does
	f.makeRoomLocked()
}

// crowdedLocked says whether a part has to wait. The caller holds mu.
func (f *DeltaFIFO) crowdedLocked() bool { return f.limited && f.log.parts > 1 && !f.telling }

// roomLocked says whether a part need not wait, or not any longer. The caller
// holds mu.
func (f *DeltaFIFO) roomLocked() bool { return !f.crowdedLocked() || f.closed }

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
