package client

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// fleet are informers that run, until stop.
type fleet struct {
	running sync.WaitGroup
	cancel  context.CancelFunc
	ctx     context.Context
}

func newFleet(ctx context.Context) *fleet {
	ctx, cancel := context.WithCancel(ctx)
	return &fleet{ctx: ctx, cancel: cancel}
}

// add makes the task's informer of a source, with a handler, and runs it.
func (f *fleet) add(t Task, source *local.Source, handler sides.Handler) (sides.Informer, error) {
	informer, err := t.Side.NewInformer(t.Form, source)
	if err != nil {
		return nil, err
	}
	if err := informer.Handle(handler, t.Delivery); err != nil {
		return nil, err
	}
	f.running.Go(func() { informer.Run(f.ctx) })
	return informer, nil
}

// stop ends all informers and waits for them.
func (f *fleet) stop() {
	f.cancel()
	f.running.Wait()
}

// synced waits for the informer's first list.
func (f *fleet) synced(informer sides.Informer) error {
	return f.wait(informer.Synced(), "the first list")
}

// wait waits for what is closed or sent when it has happened.
func (f *fleet) wait(happened <-chan struct{}, what string) error {
	select {
	case <-happened:
		return nil
	case <-f.ctx.Done():
		return fmt.Errorf("%s did not come: %w", what, f.ctx.Err())
	}
}

// lookPause is how often it is looked whether something has happened, where nobody tells.
const lookPause = 20 * time.Microsecond

// until looks until something has happened.
func (f *fleet) until(happened func() bool, what string) error {
	for !happened() {
		if f.ctx.Err() != nil {
			return fmt.Errorf("%s did not come: %w", what, f.ctx.Err())
		}
		time.Sleep(lookPause)
	}
	return nil
}

// stored waits until the store has object 0 at a version.
func (f *fleet) stored(informer sides.Informer, version string) error {
	return f.until(func() bool {
		object := informer.Get(local.Key(0))
		return object != nil && object.ResourceVersion == version
	}, "the last change")
}
