// The way of every change into a store: its key, its age, its transform, its index values. Which
// changes does a store apply, and in which form?

package cache

import (
	"context"
)

// intake prepares all changes of a store, and calls user functions for that without a lock.
type intake struct {
	store     *keyedStore
	transform TransformFunc
	// publisher notifies the handlers of an informer. It is nil in a store without one.
	publisher *publisher
	// detector may be nil.
	detector MutatedObjectDetector
	// buffer is reused for each batch.
	buffer valueBuffer
}

func (k *keyedStore) intake() intake { return intake{store: k, transform: k.transformer} }

// acceptChanges implements changeAccepter.
func (k *keyedStore) acceptChanges(
	ctx context.Context, changes []change,
) (accepted int, err error) {
	in := k.intake()
	return in.acceptChanges(ctx, changes)
}

// acceptChanges implements changeAccepter. One goroutine at a time may call it.
func (in *intake) acceptChanges(ctx context.Context, changes []change) (accepted int, err error) {
	if in.publisher != nil && in.publisher.beginWrite(len(changes)) {
		defer in.publisher.endWrite()
	}
	if in.transform != nil {
		// A transform may read the store, which must have all earlier changes.
		changes = changes[:1]
	}
	in.buffer = in.buffer.emptied()
	in.store.identifyAll(changes)
	if in.transform != nil && changes[0].prepared.err == nil {
		if err := in.store.olderThanEntry(&changes[0]); err != nil {
			return 0, err
		}
	}
	for i := range changes {
		if err := in.prepare(ctx, &changes[i]); err != nil {
			return 0, err
		}
	}
	write := storeWrite{scope: in.store.scope, events: true, feed: in.publisher}
	return in.store.storage.write(changes, write)
}

// identify sets the key and origin of a change, or err.
func (k *keyer) identify(c *change) {
	c.prepare()
	key, err := k.keyOf(c.received.object, &c.received.meta)
	if err != nil {
		c.prepared.err = rejection(c.received.object, err)
	}
	c.prepared.key = key
}

// identifyAll identifies each change. It first reads the metadata of all, then touches the texts of
// all, because memory that is waited for together takes a part of the time.
func (k *keyer) identifyAll(changes []change) {
	for i := range changes {
		r := &changes[i].received
		if !r.meta.readable {
			_ = r.meta.readUntouched(r.object)
		}
	}
	for i := range changes {
		changes[i].received.meta.touch()
	}
	for i := range changes {
		k.identify(&changes[i])
	}
}

// prepare calls the transform and the index functions. The error is the context's.
func (in *intake) prepare(ctx context.Context, c *change) error {
	p := &c.prepared
	if ctx.Err() != nil || p.err != nil || p.unchanged {
		return ctx.Err()
	}
	if p.deletes || in.transform != nil {
		in.transformObject(c)
		if ctx.Err() != nil || p.err != nil || p.deletes {
			return ctx.Err()
		}
	}
	p.index(in.store.storage.indexers.Load(), &in.buffer)
	if in.detector != nil && p.err == nil {
		in.detector.Watch(p.key.String(), p.object) // before readers can change it
	}
	return nil
}

// transformObject calls the transform. Only handlers need a deletion's final state.
func (in *intake) transformObject(c *change) {
	p := &c.prepared
	c.transform(in.store.keyFunc, in.transform, func() bool {
		_, isStored := in.store.storage.table.GetKey(p.key)
		return in.publisher != nil && (p.mayExist || isStored)
	})
	if p.err != nil || p.deletes {
		return
	}
	// The key must not keep the object before the transform in memory.
	var m metadata
	_ = m.read(p.object)
	if m.nameKey() == p.key {
		p.key = m.nameKey()
	}
}
