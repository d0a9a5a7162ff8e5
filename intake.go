package cache

import (
	"cmp"
	"context"
	"errors"

	"github.com/watchmirror/cache/internal/table"
)

// change is one change of one object on its way from a source into a store and on to handlers:
// each step fills in its part.
type change struct {
	// kind and object are as received. An object that a transform does not want becomes Deleted.
	// The object of a deletion is its final state, a tombstone, or nil: apply makes a tombstone then.
	kind   DeltaType
	object any
	// says is the metadata of the object when it was received.
	meta metadata
	// version becomes the store's together with the change, unless it is empty.
	version string
	// key and origin follow from says.
	key    table.Key
	origin table.Origin
	// place is where the store's table has key.
	place table.Place

	// values are those of each index of set, by position.
	values [][]string
	set    *indexerSet
	// unchanged is true for a listed object in the state that is stored.
	unchanged bool
	// err is why the change cannot be applied, kept is its cause as the quarantine keeps it.
	// finalErr is why the final state of a deletion cannot be used; the deletion is applied.
	err, finalErr *ObjectError
	kept          error

	// excluded is true for an object of another replica. Its change is the deletion of what is stored under its key, if anything.
	excluded bool
	// applied is true once the store has changed. old is the state before it, if existed; before
	// the write that means that there may be one. recreated is true if old had another UID.
	applied, existed, recreated bool
	old                         any
}

func (c *change) fail(stage string, err error) {
	c.err = c.objectError(stage, err)
	c.err.object = identityOf(c.object)
	c.kept = withoutStack(err)
}

func (c *change) objectError(stage string, err error) *ObjectError {
	return &ObjectError{Key: c.key.String(), ResourceVersion: c.meta.received.ResourceVersion, Stage: stage, Err: err}
}

// failure returns err or finalErr for callers of client-go's methods.
func (c *change) failure() error {
	switch bad := cmp.Or(c.err, c.finalErr); {
	case bad == nil:
		return nil
	case bad.Stage == stageKey || bad.Stage == stageMetadata:
		return KeyError{c.object, bad.Err}
	default:
		return bad
	}
}

// index computes the values for the indexes of set, unless they are there. Values of an earlier
// set stay if that fails.
func (c *change) index(set *indexerSet, room *valueRoom) {
	if c.kind == Deleted || c.err != nil || c.set == set || c.unchanged {
		return
	}
	values, err := set.valuesOf(c.object, room)
	if err != nil {
		c.fail(stageIndex, err)
		return
	}
	c.values, c.set = values, set
}

// taker is implemented by the stores, informers and queue of this package: it accepts changes from
// a reflector.
type taker interface {
	// takeChanges accepts changes in their order: at least the first, unless there is an error. The
	// caller has read the metadata. It returns how many it has accepted, the refused ones included,
	// whose err is set and whose versions count. The error is that of the change after those: a
	// *VersionRegressionError for one that is older than what was last received of its key, or the
	// context's. Readers see a change and its version both or neither.
	takeChanges(ctx context.Context, changes []change) (accepted int, err error)
}

// entryKeeper is implemented by the stores and the queue of this package, for events that come as
// part of a list.
type entryKeeper interface {
	// eventKey is the key of an event's object.
	eventKey(obj any) (table.Key, error)
	// olderThanEntry is the error of an event, with key and origin, that is older than the state
	// last received of its key, nil if it is not, or if that is not known.
	olderThanEntry(c *change) error
}

// intake is the one way into a store: it decides the outcome of each change, of a watch, a list, a
// queue or a caller. It calls the user's functions before the write, without a lock.
type intake struct {
	*keyedStore
	transform TransformFunc
	// feed is the part of an informer that is notified of changes, or nil. It is no function: a change that is
	// passed to one would be allocated.
	feed *feed
	// room is used again for each batch, if the intake is.
	room valueRoom
}

func (k *keyedStore) intake() intake { return intake{keyedStore: k, transform: k.transformer} }

// takeChanges implements taker.
func (k *keyedStore) takeChanges(ctx context.Context, changes []change) (int, error) {
	in := k.intake()
	return in.takeChanges(ctx, changes)
}

// takeChanges implements taker. One goroutine at a time calls it.
func (in *intake) takeChanges(ctx context.Context, changes []change) (accepted int, err error) {
	if in.feed != nil && in.feed.begin(len(changes)) {
		defer in.feed.end()
	}
	if in.transform != nil {
		// It may read the store, so each change is applied and delivered before the next
		// one is transformed.
		changes = changes[:1]
	}
	in.room = valueRoom{in.room.values[:0], in.room.texts[:0]}
	in.identify(changes)
	if c := &changes[0]; in.transform != nil && c.err == nil {
		if err := in.olderThanEntry(c); err != nil {
			return 0, err
		}
	}
	for i := range changes {
		if err := in.prepare(ctx, &changes[i]); err != nil {
			return 0, err
		}
	}
	return in.storage.write(changes, storeWrite{scope: in.scope, events: true, feed: in.feed})
}

// identify gives each change its key and origin, or the error why it has no key. One step follows the other for all changes:
// the processor waits for the memory of several objects at once then.
func (k *keyer) identify(changes []change) {
	for i := range changes {
		c := &changes[i]
		if !c.meta.readable {
			_ = c.meta.read(c.object)
		}
		key, err := k.keyOf(c.object, &c.meta)
		if c.key = key; err != nil {
			c.err = rejection(c.object, err)
		}
	}
	for i := range changes {
		changes[i].origin = originOf(changes[i].meta.received)
	}
}

func originOf(received ObjectVersion) table.Origin {
	return table.OriginOf(received.ResourceVersion, string(received.UID))
}

// rejection is the ObjectError of an object without a readable key.
func rejection(obj any, err error) *ObjectError {
	if errors.Is(err, errNilObject) && isNilPointer(obj) {
		return &ObjectError{Stage: stageMetadata, Err: err}
	}
	bad := &ObjectError{Key: nameOf(obj), ResourceVersion: receivedOf(obj).ResourceVersion, Stage: stageKey, Err: err}
	bad.object = identityOf(obj)
	return bad
}

// prepare calls the transform and the index functions, unless ctx has ended: the error is its own.
func (in *intake) prepare(ctx context.Context, c *change) error {
	if ctx.Err() != nil || c.err != nil || c.unchanged {
		return ctx.Err()
	}
	if c.kind == Deleted || in.transform != nil {
		c.transform(in.keyFunc, in.transform, func() bool {
			_, stored := in.storage.table.Get(c.key)
			return in.feed != nil && (c.existed || stored) // else nobody is notified of the final state
		})
		if ctx.Err() != nil || c.err != nil || c.kind == Deleted {
			return ctx.Err()
		}
		// The key must not retain the strings of the object before.
		var m metadata
		if _ = m.read(c.object); m.named() == c.key {
			c.key = m.named()
		}
	}
	if c.index(in.storage.indexers.Load(), &in.room); in.feed != nil && c.err == nil {
		if detector := in.feed.informer.detector; detector != nil { // before anybody can read it in the store
			detector.Watch(c.key.String(), c.object)
		}
	}
	return nil
}

// transform has a transform make the object's state to keep. An object that it does not want is
// deleted; a deletion whose final state fails has none. The final state of an object that is not there is not
// transformed; in the place of an UndecodableObject, or of another replica's object, comes
// the last known state.
func (c *change) transform(keyFunc KeyFunc, transform TransformFunc, there func() bool) {
	switch {
	case c.kind == Deleted && (c.excluded || isUndecoded(c.object)):
		c.object = nil
		return
	case transform == nil || c.kind == Deleted && !there():
		return
	}
	out, keep, err := transformedUnder(c.key, keyFunc, transform, c.object)
	switch {
	case err != nil && c.kind == Deleted:
		c.finalErr, c.object = c.objectError(stageTransform, err), nil
	case err != nil:
		c.fail(stageTransform, err)
	case !keep:
		c.kind, c.object = Deleted, nil
	default:
		c.object = out
	}
}

// regression is the error of an event that is older than the stored state, or the quarantined one
// if that has a version.
func (c *change) regression(stored table.Origin, quarantined string) error {
	if quarantined != "" {
		stored = table.OriginOf(quarantined, "")
	}
	if !c.origin.OlderThan(stored) {
		return nil
	}
	return &VersionRegressionError{Kind: "event", Key: c.key.String(), Current: stored.Version(), Received: c.meta.received.ResourceVersion}
}
