package cache

import (
	"cmp"
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/table"
)

// change is a change of one object on its way from a source through a store to handlers. Each step fills in its part.
type change struct {
	// event is the event that was received, if the change comes from a watch.
	event watch.Event
	// kind and object are as received, until a transform drops the object: then kind is Deleted. The object of a deletion is
	// its final state, a tombstone, or nil.
	kind   DeltaType
	object any
	// meta is the received metadata of the object.
	meta metadata
	// version becomes the store's with the change, unless it is empty.
	version string
	// key and origin follow from meta.
	key    table.Key
	origin table.Origin
	// place is the key's place in the store's table.
	place table.Place

	// values are the index values, by the position of the index in set.
	values [][]string
	set    *indexerSet
	// unchanged is true if the store has the listed object already.
	unchanged bool
	// err is why the change cannot be applied; quarantineErr is its cause as the quarantine keeps it (withoutStack). finalErr
	// is why the final state of a deletion cannot be used. Such a deletion is applied.
	err, finalErr *ObjectError
	quarantineErr error

	// excluded is true for an object of another replica's shard. Its change deletes the stored object.
	excluded bool
	// applied is true if the change has changed the store. Then old is the previous state, if existed, and recreated is true
	// if its UID was another. Before the write, existed means that there may be a previous state.
	applied, existed, recreated bool
	old                         any
}

func (c *change) fail(stage string, err error) {
	c.err = c.objectError(stage, err)
	c.err.object = identityOf(c.object)
	c.quarantineErr = withoutStack(err)
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

// index computes the values for the indexes of set, unless they are known.
func (c *change) index(set *indexerSet, buffer *valueBuffer) {
	if c.kind == Deleted || c.err != nil || c.set == set || c.unchanged {
		return
	}
	values, err := set.valuesOf(c.object, buffer)
	if err != nil {
		c.fail(stageIndex, err)
		return
	}
	c.values, c.set = values, set
}

// changeAccepter accepts changes from a reflector. The stores, informers and the queue of this package implement it.
type changeAccepter interface {
	// acceptChanges accepts changes in order, at least the first unless it fails. The caller has read their metadata. It returns
	// the number of accepted changes. These include changes with an err, whose versions count too. The error is that of the
	// next change: a *VersionRegressionError if it is older than the store's state, or the context's. Readers see a change
	// with its version.
	acceptChanges(ctx context.Context, changes []change) (accepted int, err error)
}

// eventChecker finds events that are older than the store. The stores and the queue of this package implement it.
type eventChecker interface {
	// eventKey returns the key of an event's object.
	eventKey(obj any) (table.Key, error)
	// olderThanEntry returns the error for an event that is older than the known state of its key, or nil.
	olderThanEntry(c *change) error
}

// intake prepares all changes of a store, and calls user functions for that without a lock.
type intake struct {
	*keyedStore
	transform TransformFunc
	// feed publishes the changes to an informer's handlers. It may be nil, as detector.
	feed     *feed
	detector MutatedObjectDetector
	// buffer is reused for each batch.
	buffer valueBuffer
}

func (k *keyedStore) intake() intake { return intake{keyedStore: k, transform: k.transformer} }

// acceptChanges implements changeAccepter.
func (k *keyedStore) acceptChanges(ctx context.Context, changes []change) (int, error) {
	in := k.intake()
	return in.acceptChanges(ctx, changes)
}

// acceptChanges implements changeAccepter. One goroutine at a time may call it.
func (in *intake) acceptChanges(ctx context.Context, changes []change) (accepted int, err error) {
	if in.feed != nil && in.feed.beginWrite(len(changes)) {
		defer in.feed.endWrite()
	}
	if in.transform != nil {
		// A transform may read the store, which must have all earlier changes.
		changes = changes[:1]
	}
	in.buffer = valueBuffer{in.buffer.values[:0], in.buffer.texts[:0]}
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

// identify sets the key and origin of each change, or err.
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
		c.origin = originOf(c.meta.received)
	}
}

func originOf(received ObjectVersion) table.Origin {
	return table.OriginOf(received.ResourceVersion, string(received.UID))
}

// rejection returns the ObjectError of an object without a key.
func rejection(obj any, err error) *ObjectError {
	if errors.Is(err, errNilObject) && isNilPointer(obj) {
		return &ObjectError{Stage: stageMetadata, Err: err}
	}
	bad := &ObjectError{Key: nameOf(obj), ResourceVersion: receivedOf(obj).ResourceVersion, Stage: stageKey, Err: err}
	bad.object = identityOf(obj)
	return bad
}

// prepare calls the transform and the index functions. The error is the context's.
func (in *intake) prepare(ctx context.Context, c *change) error {
	if ctx.Err() != nil || c.err != nil || c.unchanged {
		return ctx.Err()
	}
	if c.kind == Deleted || in.transform != nil {
		c.transform(in.keyFunc, in.transform, func() bool {
			_, stored := in.storage.table.Get(c.key)
			return in.feed != nil && (c.existed || stored) // only handlers need the final state
		})
		if ctx.Err() != nil || c.err != nil || c.kind == Deleted {
			return ctx.Err()
		}
		// The key must not keep the object before the transform in memory.
		var m metadata
		if _ = m.read(c.object); m.nameKey() == c.key {
			c.key = m.nameKey()
		}
	}
	if c.index(in.storage.indexers.Load(), &in.buffer); in.detector != nil && c.err == nil {
		in.detector.Watch(c.key.String(), c.object) // before readers can change it
	}
	return nil
}

// transform transforms the object. A dropped object becomes a deletion. The final state of a deletion is nil, and becomes
// the last known state, if its transform fails, if it was not decoded, or if it belongs to another replica. The final state
// of an object that is not stored is not transformed.
func (c *change) transform(keyFunc KeyFunc, transform TransformFunc, there func() bool) {
	switch {
	case c.kind == Deleted && (c.excluded || isUndecoded(c.object)):
		c.object = nil
		return
	case c.err != nil || transform == nil || c.kind == Deleted && !there():
		return
	}
	out, keep, err := callTransform(c.key, keyFunc, transform, c.object)
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

// regression returns the error for an event that is older than the newest known state of its key, or nil.
func (c *change) regression(newest table.Origin) error {
	if !c.origin.OlderThan(newest) {
		return nil
	}
	return &VersionRegressionError{Kind: "event", Key: c.key.String(), Current: newest.Version(), Received: c.meta.received.ResourceVersion}
}
