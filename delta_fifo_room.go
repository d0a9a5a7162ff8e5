package cache

import "context"

// This file makes the parts of a first list wait for a consumer of our own.

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
