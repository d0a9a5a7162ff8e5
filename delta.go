package cache

import "github.com/watchmirror/cache/internal/table"

// DeltaType says what kind of change a Delta is.
type DeltaType string

// The kinds of change, with the values of client-go's DeltaType.
const (
	// Added: the source sent an object that it says is new.
	Added DeltaType = "Added"
	// Updated: the source sent a newer state of an object.
	Updated DeltaType = "Updated"
	// Deleted: the object is gone. Delta.Object is its final state, or a
	// DeletedFinalStateUnknown where nobody saw the final state.
	Deleted DeltaType = "Deleted"
	// Replaced: the object was in a list (the first one, or a relist). Whether
	// it differs from what the consumer holds is for the consumer to find out.
	// A DeltaFIFO sends it only if DeltaFIFOOptions.EmitDeltaTypeReplaced is set,
	// and Sync in its place otherwise.
	Replaced DeltaType = "Replaced"
	// Sync: nothing changed; the object is sent again because of a resync.
	Sync DeltaType = "Sync"
	// Bookmark: no object changed; Delta.Object is a BookmarkInfo with the
	// resource version that holds once every delta before it has been applied.
	// Only PopBatch sends it, never Pop.
	Bookmark DeltaType = "Bookmark"
)

// Delta is one change: its kind, and the object's state after it (for Deleted,
// the state before). The object is shared and must not be changed.
type Delta struct {
	Type   DeltaType
	Object any
}

// Deltas are the changes of one key, oldest first, never empty when they come
// out of a queue.
type Deltas []Delta

// Oldest returns the first change, or nil if there is none.
func (d Deltas) Oldest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[0]
}

// Newest returns the last change, or nil if there is none.
func (d Deltas) Newest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[len(d)-1]
}

// DeletedFinalStateUnknown is a tombstone: the object under Key is gone, and its
// deletion itself was not seen (a relist noticed it). Obj is the last state that
// was known, which may be older than the one that was deleted, or nil.
type DeletedFinalStateUnknown struct {
	Key string
	Obj any
}

// BookmarkInfo is the object of a Bookmark delta.
type BookmarkInfo struct {
	// ResourceVersion holds once all deltas before the bookmark are applied.
	ResourceVersion string
}

// change is a Delta with what the library keeps beside it: the key, computed once, of which
// no text is made before somebody wants it; and what the source said of the object before any
// transform saw it.
type queued struct {
	Delta
	key      table.Key
	received Received
	// origin is set where that is all that is known of what was received.
	origin table.Origin
}

// from is the origin of what was received.
func (c *queued) from() table.Origin {
	if c.origin != (table.Origin{}) {
		return c.origin
	}
	return originOf(c.received)
}

// lastReceived is what was received, or, where the queue's known objects do not say it,
// what the object says of itself.
func (c queued) lastReceived() Received {
	if c.received.ResourceVersion == "" {
		return receivedOf(c.Object)
	}
	return c.received
}

// mergeDeletion reports how two neighbouring changes of one key combine. Two
// deletions in a row are one: the earlier stays unless it is only a tombstone,
// because the one with the real final state says more. ok is false if both are
// to be kept.
func mergeDeletion(earlier, later queued) (merged queued, ok bool) {
	if earlier.Type != Deleted || later.Type != Deleted {
		return queued{}, false
	}
	if _, unknown := earlier.Object.(DeletedFinalStateUnknown); unknown {
		return later, true
	}
	return earlier, true
}
