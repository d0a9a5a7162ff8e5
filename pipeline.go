package cache

import (
	"context"

	"github.com/watchmirror/cache/internal/table"
)

// This file is the seam between our own reflector, queue, store and controller:
// what they say to each other beyond the compatible interfaces. A foreign store
// or queue has none of it and is served through the compatible calls alone.

// event is a change that a source sent, on its way into a store.
type event struct {
	kind DeltaType // Added, Updated or Deleted
	obj  any
	// says is what obj says of itself, for takeEvents, and nil for takeEvent. It is the caller's.
	says *metadata
	// version becomes the store's version together with the event; empty leaves
	// the version where it is.
	version string
}

// eventTaker is implemented by our stores. Object and version arrive in one
// call, so that nobody ever sees the version without the object.
//
// An *ObjectError says that the object was quarantined; its version counts all
// the same. A *RegressionError says that nothing was taken, because the entry
// under the object's key is newer. Callers use asObjectError and errors.As.
type eventTaker interface {
	takeEvent(event) error
}

// eventsTaker is an eventTaker that takes several events for what one costs.
type eventsTaker interface {
	eventTaker
	// takeEvents takes some events, in their order, and at least the first. It says how
	// many it has taken, the refused ones included, which are quarantined and appended to
	// refused. An error is no *ObjectError; it is that of the event after those that were
	// taken, and nothing of that one was. Readers see of an object and its version both or
	// neither.
	takeEvents(events []event, refused []refusedEvent) (taken int, all []refusedEvent, err error)
	// flood says that more comes than can be taken from now on, or does no more: then what
	// many events are taken with is given back.
	flood(comes bool)
}

// refusedEvent is one of several events that could not be taken, and why.
type refusedEvent struct {
	at  int
	err *ObjectError
}

// batch is what a DeltaFIFO hands to our controller: everything that was pending
// and belongs together.
type batch struct {
	changes []change
	// version holds once all changes are applied; empty: it did not move.
	version string
	// initial is true if all changes belong to the first list.
	initial bool
}

// entryKeeper is implemented by our stores, for events that come as part of a list.
type entryKeeper interface {
	// eventKey is the key of an event's object.
	eventKey(obj any) (table.Key, error)
	// olderThanEntry is the error of an event that is older than the entry under its key,
	// nil if it is not, or if that is not known. What is held back counts, too.
	olderThanEntry(key table.Key, received Received) *RegressionError
}

// batchApplier is implemented by our stores: one write for a whole batch.
type batchApplier interface {
	// applyBatch applies the changes in their order and then sets the version,
	// all in one step for readers, and appends one outcome a change to
	// outcomes. A Deleted change deletes by its key. The store's own transform
	// runs for each change that carries a received object unless transformed
	// says that the queue has done so. If ctx ends while it prepares the batch, which
	// calls user code for each change, nothing is applied and no outcome appended.
	applyBatch(ctx context.Context, b batch, transformed bool, outcomes []outcome) []outcome
}

// outcome is what became of one change.
type outcome struct {
	// old is what was there before, if existed.
	old     any
	existed bool
	// was is what had been received of it.
	was Received
	// obj is what is there now (a transform may have made it); for a deletion,
	// what the change carried.
	obj any
	// unwanted is true if a transform returned nil for the object: it is not
	// there now, whether or not something was there before.
	unwanted bool
	// err is set if the object was quarantined: old is still there.
	err *ObjectError
	// finalErr is set if a deletion's final state could not be transformed. The
	// deletion has happened and obj is a tombstone; nothing is quarantined, but
	// the failure is to be reported.
	finalErr *ObjectError
}

// holder is implemented by our stores and consumers. A queue asks them before it
// takes the deletion of a key that nobody has for meaningless: a state of it may be
// held back, and is to be forgotten. It is called under the queue's lock and must
// not call the queue.
type holder interface {
	// heldVersion is the version of the state that is held back, "" if that is not known.
	heldVersion(key string) (version string, held bool)
	heldKeys() []string
	// mayHold says whether any key may be held back, so that in the usual case nobody
	// need ask for each.
	mayHold() bool
}

// quarantiner is implemented by whatever holds back objects.
type quarantiner interface {
	// quarantined returns the objects held back at the moment, by key.
	quarantined() []Quarantined
}
