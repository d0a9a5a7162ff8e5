package cache

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// processConsumer hands what comes out of a queue to a function.
type processConsumer struct {
	reflector    *Reflector
	queue        Queue
	process      ProcessFunc
	processBatch ProcessBatchFunc

	mu sync.Mutex
	// seen is the newest version that a foreign queue has handed out.
	seen string
	// failed are the objects that could not be processed.
	failed quarantinePart
}

func newProcessConsumer(r *Reflector, c Config) *processConsumer {
	return &processConsumer{
		reflector: r, queue: c.Queue, process: c.Process, processBatch: c.ProcessBatch, failed: partOf(c.Queue, byConsumer),
	}
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
	return p.failed.list(everyKey)
}

func (p *processConsumer) attach() (detach func()) {
	queue, ours := p.queue.(*DeltaFIFO)
	if !ours {
		return func() {}
	}
	how := takesKeys
	if p.processBatch != nil {
		how = takesBatches
	}
	return queue.attach(how)
}

func (p *processConsumer) consume(ctx context.Context) {
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
		err = ErrHandlerPanicked
	}
	p.see(deltas)
	if err == nil {
		p.settle(deltas, nil)
		return nil
	}
	p.reflector.tell(ctx, p.settle(deltas, withoutObject(err)))
	return err
}

// see notes the newest version among what was processed, whatever came of it.
func (p *processConsumer) see(deltas []Delta) {
	if _, tells := appliedVersionOf(p.queue); tells {
		return
	}
	for _, d := range deltas {
		version := receivedOf(d.Object).ResourceVersion
		p.mu.Lock()
		if p.seen == "" || versionBefore(p.seen, version) {
			p.seen = version
		}
		p.mu.Unlock()
	}
}

// settle notes what became of deltas, and returns the error that says so if they could not be
// processed.
func (p *processConsumer) settle(deltas []Delta, err error) *ProcessError {
	const named = 10
	if err == nil && !p.failed.any() {
		return nil
	}
	failed := &ProcessError{Err: err}
	for _, d := range deltas {
		if d.Type == Bookmark {
			continue
		}
		key, version := p.keyOf(d), receivedOf(d.Object).ResourceVersion
		failed.Changes++
		if len(failed.Keys) < named && !slices.Contains(failed.Keys, key) {
			failed.Keys = append(failed.Keys, key)
		}
		var refused *ObjectError
		if err != nil {
			refused = &ObjectError{Key: key, ResourceVersion: version, Stage: StageProcess, Err: err}
		}
		settle(p.failed, p.queue, d, key, version, refused)
	}
	return failed
}

// keyOf is the queue's, if it tells: a tombstone has that key, too.
func (p *processConsumer) keyOf(d Delta) string {
	keyOf := DeletionHandlingMetaNamespaceKeyFunc
	if keyed, ok := p.queue.(interface{ KeyOf(any) (string, error) }); ok {
		keyOf = keyed.KeyOf
	}
	key, err := keyOf(d.Object)
	if err != nil {
		return describe(d.Object)
	}
	return key
}
