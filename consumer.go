package cache

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// storeConsumer applies batches to a store and tells a handler.
type storeConsumer struct {
	reflector      *Reflector
	queue          *DeltaFIFO
	store          Store
	handler        ResourceEventHandler
	mergeRecreated bool
	// outcomes is reused from batch to batch; it is cleared after each, so that
	// it keeps no object alive.
	outcomes []outcome
}

func newStoreConsumer(r *Reflector, c Config) *storeConsumer {
	return &storeConsumer{
		reflector: r, queue: c.Queue.(*DeltaFIFO), store: c.Store,
		handler: c.Handler, mergeRecreated: c.MergeRecreated,
	}
}

func (s *storeConsumer) appliedVersion() string { return s.store.LastStoreSyncResourceVersion() }

func (s *storeConsumer) quarantined() []Quarantined { return quarantinedIn(s.store) }

func (s *storeConsumer) consume(ctx context.Context) {
	s.queue.limitParts(true)
	defer s.queue.limitParts(false)
	for ctx.Err() == nil {
		err := s.queue.popPending(func(b batch) error {
			if ctx.Err() != nil {
				return errDropped
			}
			s.apply(ctx, b)
			return nil
		})
		if errors.Is(err, ErrFIFOClosed) {
			return
		}
	}
}

// apply writes a batch and then tells of it: readers are never behind handlers.
func (s *storeConsumer) apply(ctx context.Context, b batch) {
	s.outcomes = s.write(b)
	for i, o := range s.outcomes {
		if ctx.Err() != nil {
			break
		}
		if o.err != nil {
			s.reflector.quarantined(ctx, o.err, heldIn(s.store, o.err))
			continue
		}
		if o.finalErr != nil {
			s.reflector.tell(ctx, o.finalErr)
		}
		s.tell(ctx, b.changes[i], o, b.initial)
	}
	clear(s.outcomes)
	s.outcomes = s.outcomes[:0]
}

func (s *storeConsumer) write(b batch) []outcome {
	if applier, ours := s.store.(batchApplier); ours {
		return applier.applyBatch(b, s.queue.Transformer() != nil, s.outcomes)
	}
	return applyOneByOne(s.store, b, s.outcomes)
}

// tell calls the handler for one change.
func (s *storeConsumer) tell(ctx context.Context, c change, o outcome, initial bool) {
	if s.handler == nil {
		return
	}
	switch {
	case c.Type == Deleted || o.unwanted:
		if o.existed {
			s.call(ctx, c.key, func() { s.handler.OnDelete(lastState(c, o)) })
		}
	case !o.existed:
		s.call(ctx, c.key, func() { s.handler.OnAdd(o.obj, initial) })
	case !s.mergeRecreated && recreated(o.old, o.obj):
		s.call(ctx, c.key, func() { s.handler.OnDelete(DeletedFinalStateUnknown{Key: c.key, Obj: o.old}) })
		s.call(ctx, c.key, func() { s.handler.OnAdd(o.obj, initial) })
	default:
		s.call(ctx, c.key, func() { s.handler.OnUpdate(o.old, o.obj) })
	}
}

// call calls the handler. Its panic is the panic handlers' and, unless they end
// the process, reported.
func (s *storeConsumer) call(ctx context.Context, key string, notify func()) {
	if survivedPanic(ctx, notify) {
		s.reflector.tell(ctx, &ProcessError{Keys: []string{key}, Changes: 1, Err: errConsumerPanicked})
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
func lastState(c change, o outcome) any {
	if c.Type == Deleted {
		return o.obj
	}
	return DeletedFinalStateUnknown{Key: c.key, Obj: o.old}
}

// recreated is true if two states are of two objects of one name.
func recreated(old, new any) bool {
	was, is := uidOf(old), uidOf(new)
	return was != "" && is != "" && was != is
}

func uidOf(obj any) types.UID { return receivedOf(obj).UID }

// applyOneByOne is applyBatch for a store that is not ours.
func applyOneByOne(store Store, b batch, outcomes []outcome) []outcome {
	for _, c := range b.changes {
		o := outcome{obj: c.Object}
		o.old, o.existed, _ = store.GetByKey(c.key)
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
				Key: c.key, ResourceVersion: c.received.ResourceVersion, Stage: StageProcess,
				Err: &StoreError{Op: op, Name: c.key, Err: err},
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

// processConsumer hands what comes out of a queue to a function.
type processConsumer struct {
	reflector    *Reflector
	queue        Queue
	process      ProcessFunc
	processBatch ProcessBatchFunc

	mu sync.Mutex
	// seen is the newest version that a foreign queue has handed out.
	seen string
	held quarantine
}

func newProcessConsumer(r *Reflector, c Config) *processConsumer {
	return &processConsumer{reflector: r, queue: c.Queue, process: c.Process, processBatch: c.ProcessBatch}
}

func (p *processConsumer) appliedVersion() string {
	if version, ok := appliedVersionOf(p.queue); ok {
		return version
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

func (p *processConsumer) quarantined() []Quarantined {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held.list()
}

func (p *processConsumer) consume(ctx context.Context) {
	if limited, ok := p.queue.(interface{ limitParts(bool) }); ok {
		limited.limitParts(true)
		defer limited.limitParts(false)
	}
	batches, hasBatches := p.queue.(QueueWithBatch)
	for ctx.Err() == nil {
		var err error
		if hasBatches && p.processBatch != nil {
			err = batches.PopBatch(p.batch(ctx), p.single(ctx))
		} else {
			_, err = p.queue.Pop(p.single(ctx))
		}
		if errors.Is(err, ErrFIFOClosed) {
			return
		}
	}
}

// single wraps Process: what is handed out after the context has ended is
// dropped, and errors are reported here, where the keys are known.
func (p *processConsumer) single(ctx context.Context) PopProcessFunc {
	return func(obj any, isInInitialList bool) error {
		if ctx.Err() != nil {
			return errDropped
		}
		deltas, _ := obj.(Deltas)
		return p.done(ctx, deltas, func() error { return p.process(obj, isInInitialList) })
	}
}

// batch is single for ProcessBatch.
func (p *processConsumer) batch(ctx context.Context) ProcessBatchFunc {
	return func(deltas []Delta, isInInitialList bool) error {
		if ctx.Err() != nil {
			return errDropped
		}
		return p.done(ctx, deltas, func() error { return p.processBatch(deltas, isInInitialList) })
	}
}

// done has changes processed and notes what became of them.
func (p *processConsumer) done(ctx context.Context, deltas []Delta, process func() error) error {
	var err error
	if survivedPanic(ctx, func() { err = process() }) {
		err = errConsumerPanicked
	}
	var failed *ProcessError
	if err != nil {
		failed = &ProcessError{Err: err}
	}
	p.mu.Lock()
	for _, d := range deltas {
		if d.Type == Bookmark {
			continue
		}
		p.noteLocked(d, failed)
	}
	p.mu.Unlock()
	if failed != nil {
		p.reflector.tell(ctx, failed)
	}
	return err
}

// noteLocked holds a key back if its change could not be processed, and releases
// it otherwise. The caller holds mu.
func (p *processConsumer) noteLocked(d Delta, failed *ProcessError) {
	const named = 10
	key, err := DeletionHandlingMetaNamespaceKeyFunc(d.Object)
	if err != nil {
		key = describe(d.Object)
	}
	received := receivedOf(d.Object)
	if p.seen == "" || versionBefore(p.seen, received.ResourceVersion) {
		p.seen = received.ResourceVersion
	}
	if failed == nil {
		p.held.release(key)
		return
	}
	failed.Changes++
	if len(failed.Keys) < named && (len(failed.Keys) == 0 || failed.Keys[len(failed.Keys)-1] != key) {
		failed.Keys = append(failed.Keys, key)
	}
	p.held.add(&ObjectError{Key: key, ResourceVersion: received.ResourceVersion, Stage: StageProcess, Err: failed.Err})
}
