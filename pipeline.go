package cache

import "github.com/watchmirror/cache/internal/table"

// This file is the seam between our own reflector, queue, store and controller: what they say to
// each other beyond the compatible interfaces. A foreign store or queue has none of it and is
// served through the compatible calls alone. See taker as well.

// batch is what a DeltaFIFO hands to our controller: everything that was pending
// and belongs together.
type batch struct {
	changes []queued
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
	olderThanEntry(key table.Key, received Received) error
}

var (
	_ entryKeeper = (*cache)(nil)
	_ entryKeeper = (*DeltaFIFO)(nil)
	_ entryKeeper = informerStore{}
)
