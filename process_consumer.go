package cache

import (
	"context"
	"errors"
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
