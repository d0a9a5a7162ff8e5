package cache

import (
	"context"
	"errors"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// storeConsumer applies batches to a store and tells a handler.
type storeConsumer struct {
	reflector      *Reflector
	queue          *DeltaFIFO
	store          Store
	handler        ResourceEventHandler
	mergeRecreated bool
	// turns are shared by the consumers that have one handler: whoever has changes
	// waits for the turn.
	turns turns
	// changes is reused from batch to batch; it is cleared after each, so that it keeps no
	// object alive.
	changes []change
	// refused are the objects that a store of another package has refused.
	refused quarantinePart
}

func newStoreConsumer(r *Reflector, c Config) *storeConsumer {
	s := &storeConsumer{
		reflector: r, queue: c.Queue.(*DeltaFIFO), store: c.Store,
		handler: c.Handler, mergeRecreated: c.MergeRecreated,
	}
	s.refused = s.queue.consumed()
	return s
}

func (s *storeConsumer) appliedVersion() string { return s.store.LastStoreSyncResourceVersion() }

func (s *storeConsumer) quarantined() []Quarantined {
	return mergeQuarantined(s.refused.list(everyKey), quarantinedIn(s.store))
}

func (s *storeConsumer) attach() (detach func()) {
	s.queue.limitParts(true)
	return s.queue.attach(takesBatches)
}

func (s *storeConsumer) consume(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.queue.popPending(func(b batch) error { return s.take(ctx, b) })
		if errors.Is(err, ErrFIFOClosed) {
			return
		}
	}
}

// take applies a batch when it is its turn, or drops it where ctx has ended.
//
// A version alone, that of an empty first list too, changes no object and has nothing
// to tell. It takes no turn, so that a namespace without objects syncs however long
// the handler is busy with another, or waits for this very one.
func (s *storeConsumer) take(ctx context.Context, b batch) error {
	shared := s.turns
	if len(b.changes) == 0 {
		shared = nil
	}
	s.queue.awaitsHandler(shared != nil)
	if !shared.begin(ctx) {
		return errDropped
	}
	defer shared.end()
	s.queue.awaitsHandler(false)
	return s.apply(ctx, b)
}

// apply writes a batch and then tells of it: readers are never behind handlers.
func (s *storeConsumer) apply(ctx context.Context, b batch) error {
	defer s.clearChanges()
	for i := range b.changes {
		q := &b.changes[i]
		s.changes = append(s.changes, change{
			kind: q.Type, object: q.Object, key: q.key, says: metadata{received: q.lastReceived()}, origin: q.from(),
		})
	}
	if !s.write(ctx, b.version) {
		return errDropped
	}
	s.queue.awaitsHandler(s.handler != nil) // until the turn ends
	for i := range s.changes {
		if ctx.Err() != nil {
			break
		}
		c := &s.changes[i]
		if c.err == nil && s.refused.any() || c.err != nil && !heldIn(s.store, c.err) {
			settle(s.refused, s.queue, b.changes[i].Delta, c.key.String(), c.says.received.ResourceVersion, c.err)
		}
		if c.err != nil {
			s.reflector.quarantined(ctx, c.err, true)
			continue
		}
		if c.finalErr != nil && c.applied {
			s.reflector.tell(ctx, c.finalErr)
		}
		s.tell(ctx, c, b.initial)
	}
	return nil
}

func (s *storeConsumer) clearChanges() {
	clear(s.changes)
	s.changes = s.changes[:0]
	if cap(s.changes) > keptCapacity {
		s.changes = nil
	}
}

// settle notes what became of a delta: where it was refused, its key is quarantined until as new a
// state is applied, or the object is deleted.
func settle(part quarantinePart, queue Queue, d Delta, key, version string, refused *ObjectError) {
	before, quarantined := part.version(key)
	repeats := onlyRepeats(queue, d) // a resync's state need not be the newest
	switch {
	case refused != nil && !(repeats && quarantined):
		part.add("", refused, withoutStack(refused.Err))
	case refused != nil || !quarantined:
	// What a list says is what the source has, also if that is older.
	case d.Type == Deleted, d.Type == Replaced, repeats && before == version, !repeats && !versionBefore(version, before):
		part.release(key)
	}
}

func (s *storeConsumer) write(ctx context.Context, version string) bool {
	if own, ok := ours(s.store); ok {
		in := own.intake()
		return in.apply(ctx, s.changes, version, s.queue.Transformer() != nil)
	}
	return applyOneByOne(ctx, s.store, s.changes, version)
}

// tell calls the handler for one change. Its panic is the panic handlers' and, unless
// they end the process, reported.
func (s *storeConsumer) tell(ctx context.Context, c *change, initial bool) {
	if s.handler == nil || !c.applied {
		return
	}
	var n notification
	setNotification(&n, c, initial, s.mergeRecreated)
	keyed, _ := s.handler.(keyedHandler)
	for i, kind := range callsOf(n.Kind) {
		if i > 0 && ctx.Err() != nil {
			return // the second call of a re-creation
		}
		if survivedPanic(ctx, func() { callHandler(kind, &n, s.handler, keyed) }) {
			s.reflector.tell(ctx, &ProcessError{Keys: []string{c.key.String()}, Changes: 1, Err: ErrHandlerPanicked})
		}
	}
}

// survivedPanic runs f and says whether it panicked and apimachinery's panic
// handlers let the process live. Otherwise the panic goes on.
func survivedPanic(ctx context.Context, f func()) bool {
	panicked := true
	func() {
		defer utilruntime.HandleCrashWithContext(ctx)
		f()
		panicked = false
	}()
	return panicked
}

// applyOneByOne is intake.apply for a store that is not ours. What it has applied when ctx ends
// stays so, and nobody is told of it.
func applyOneByOne(ctx context.Context, store Store, changes []change, version string) bool {
	for i := range changes {
		if ctx.Err() != nil {
			return false
		}
		c := &changes[i]
		c.old, c.existed, _ = store.GetByKey(c.key.String())
		c.recreated = c.origin.Recreates(originOf(receivedOf(c.old)))
		c.applied = c.existed || c.kind != Deleted
		var err error
		op := "Update"
		switch {
		case !c.applied:
		case c.kind == Deleted:
			op, err = "Delete", store.Delete(deletable(c))
		case c.existed:
			err = store.Update(c.object)
		default:
			op, err = "Add", store.Add(c.object)
		}
		if err != nil {
			c.applied = false
			c.err = c.objectError(StageProcess, &StoreError{Op: op, Name: c.key.String(), Err: withoutObject(err)})
		}
	}
	if version != "" {
		store.Bookmark(version)
	}
	return true
}

// deletable is an object that a foreign store's key function is sure to accept:
// not every one knows tombstones.
func deletable(c *change) any {
	if _, tombstone := c.object.(DeletedFinalStateUnknown); tombstone {
		return c.old
	}
	return c.object
}
