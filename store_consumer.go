package cache

import (
	"context"
	"errors"
	"sync"

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
	// outcomes is reused from batch to batch; it is cleared after each, so that
	// it keeps no object alive.
	outcomes []outcome

	mu sync.Mutex
	// held are the objects that the store has refused and does not remember.
	held quarantine
}

func newStoreConsumer(r *Reflector, c Config) *storeConsumer {
	s := &storeConsumer{
		reflector: r, queue: c.Queue.(*DeltaFIFO), store: c.Store,
		handler: c.Handler, mergeRecreated: c.MergeRecreated,
	}
	showQuarantines(s.store, r, s.queue)
	return s
}

func (s *storeConsumer) appliedVersion() string { return s.store.LastStoreSyncResourceVersion() }

func (s *storeConsumer) quarantined() []Quarantined {
	s.mu.Lock()
	mine := s.held.list()
	s.mu.Unlock()
	return mergeQuarantined(mine, quarantinedIn(s.store))
}

func (s *storeConsumer) attach() (detach func()) {
	s.queue.limitParts(true)
	return s.queue.attach(takesBatches, s)
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
	s.outcomes = s.write(ctx, b)
	defer s.clearOutcomes()
	if len(s.outcomes) < len(b.changes) {
		return errDropped
	}
	s.queue.awaitsHandler(s.handler != nil) // until the turn ends
	for i, o := range s.outcomes {
		if ctx.Err() != nil {
			break
		}
		s.hold(b.changes[i], o.err)
		if o.err != nil {
			s.reflector.quarantined(ctx, o.err, true)
			continue
		}
		if o.finalErr != nil {
			s.reflector.tell(ctx, o.finalErr)
		}
		s.tell(ctx, b.changes[i], o, b.initial)
	}
	return nil
}

func (s *storeConsumer) clearOutcomes() {
	clear(s.outcomes)
	s.outcomes = s.outcomes[:0]
	if cap(s.outcomes) > keptCapacity {
		s.outcomes = nil
	}
}

// hold notes what became of a change where the store does not: what was refused is
// held back until as new a state is taken, or the key is gone.
func (s *storeConsumer) hold(c change, refused *ObjectError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused == nil && !s.held.holdsAny() {
		return
	}
	key := c.key.String()
	switch {
	case refused != nil && heldIn(s.store, refused):
	case refused != nil && onlyRepeats(s.queue, c.Delta) && s.held.holds(key):
		// What a resync repeats is not the newest, if another state is held back already.
	case refused != nil:
		s.held.add(refused)
	case c.Type == Deleted, c.Type == Replaced:
		// What a list says is what the source has, also if that is older.
		s.held.release(key)
	case onlyRepeats(s.queue, c.Delta):
		s.held.releaseRepeated(key, c.lastReceived())
	default:
		s.held.releaseFor(key, c.lastReceived())
	}
}

func (s *storeConsumer) heldVersion(key string) (version string, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.version(key)
}

func (s *storeConsumer) heldKeys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.keys()
}

func (s *storeConsumer) mayHold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held.holdsAny()
}

func (s *storeConsumer) write(ctx context.Context, b batch) []outcome {
	if applier, ours := s.store.(batchApplier); ours {
		return applier.applyBatch(ctx, b, s.queue.Transformer() != nil, s.outcomes)
	}
	return applyOneByOne(ctx, s.store, b, s.outcomes)
}

// tell calls the handler for one change. Its panic is the panic handlers' and, unless
// they end the process, reported.
func (s *storeConsumer) tell(ctx context.Context, c change, o outcome, initial bool) {
	if s.handler == nil {
		return
	}
	n := notification{key: c.key}
	if !n.say(&c, &o, initial, s.mergeRecreated) {
		return
	}
	keyed, _ := s.handler.(keyedHandler)
	for i, kind := range n.calls() {
		if i > 0 && ctx.Err() != nil {
			return // the second call of a re-creation
		}
		if survivedPanic(ctx, func() { n.call(kind, s.handler, keyed) }) {
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

// lastState is what OnDelete is told: the final state if the source sent it.
func lastState(c *change, o *outcome) any {
	if c.Type == Deleted {
		return o.obj
	}
	return DeletedFinalStateUnknown{Key: c.key.String(), Obj: o.old}
}

// recreated is true if two states are of two objects of one name. What was
// received says so, not what a transform left of it.
func recreated(was, is Received) bool {
	return was.UID != "" && is.UID != "" && was.UID != is.UID
}

// applyOneByOne is applyBatch for a store that is not ours. What it has applied when ctx
// ends stays so, and nobody is told of it.
func applyOneByOne(ctx context.Context, store Store, b batch, outcomes []outcome) []outcome {
	for _, c := range b.changes {
		if ctx.Err() != nil {
			return outcomes
		}
		o := outcome{obj: c.Object}
		o.old, o.existed, _ = store.GetByKey(c.key.String())
		o.was = receivedOf(o.old)
		var err error
		op := "Update"
		switch {
		case c.Type == Deleted && !o.existed:
		case c.Type == Deleted:
			op, err = "Delete", store.Delete(deletable(c, o.old))
		case o.existed:
			err = store.Update(c.Object)
		default:
			op, err = "Add", store.Add(c.Object)
		}
		if err != nil {
			o.err = &ObjectError{
				Key: c.key.String(), ResourceVersion: c.lastReceived().ResourceVersion, Stage: StageProcess,
				Err: &StoreError{Op: op, Name: c.key.String(), Err: withoutObject(err)},
			}
		}
		outcomes = append(outcomes, o)
	}
	if b.version != "" {
		store.Bookmark(b.version)
	}
	return outcomes
}

// deletable is an object that a foreign store's key function is sure to accept:
// not every one knows tombstones.
func deletable(c change, old any) any {
	if _, tombstone := c.Object.(DeletedFinalStateUnknown); tombstone {
		return old
	}
	return c.Object
}
