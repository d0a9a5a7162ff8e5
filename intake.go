package cache

import (
	"context"
)

// intake prepares all changes of a store, and calls user functions for that without a lock.
type intake struct {
	*keyedStore
	transform TransformFunc
	// feed publishes the changes to an informer's handlers. It may be nil, as detector.
	feed     *publisher
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
	in.identifyAll(changes)
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

// identify sets the key and origin of a change, or err.
func (k *keyer) identify(c *change) {
	if !c.meta.readable {
		_ = c.meta.read(c.object)
	}
	key, err := k.keyOf(c.object, &c.meta)
	if err != nil {
		c.err = rejection(c.object, err)
	}
	c.key = key
	c.origin = originOf(c.meta.received)
}

// identifyAll identifies each change.
func (k *keyer) identifyAll(changes []change) {
	for i := range changes {
		k.identify(&changes[i])
	}
}

// prepare calls the transform and the index functions. The error is the context's.
func (in *intake) prepare(ctx context.Context, c *change) error {
	if ctx.Err() != nil || c.err != nil || c.unchanged {
		return ctx.Err()
	}
	if c.kind == Deleted || in.transform != nil {
		c.transform(in.keyFunc, in.transform, func() bool {
			_, stored := in.storage.table.GetKey(c.key)
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
