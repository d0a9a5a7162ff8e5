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

// add makes the task's informer of a source, with its handlers, and runs it.
func (f *fleet) add(t Task, source *local.Source, handlers ...sides.Handler) (*sides.Informer, error) {
	informer, err := sides.NewInformer(t.Side, t.Form, source)
	if err != nil {
		return nil, err
	}
	for _, handler := range handlers {
		if err := informer.Handle(handler, t.Delivery); err != nil {
			return nil, err
		}
	}
	f.running.Go(func() { informer.Run(f.ctx) })
	return informer, nil
}

// stop ends all informers and waits for them.
func (f *fleet) stop() {
	f.cancel()
	f.running.Wait()
}

// wait waits for a channel that is closed, or sent to, when it has happened.
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
func (f *fleet) stored(informer *sides.Informer, version string) error {
	return f.until(func() bool {
		object := informer.Get(local.Key(0))
		return object != nil && object.ResourceVersion == version
	}, "the last change")
}

// send sends changes, each when the one before has been received.
func (f *fleet) send(source *local.Source, changes []*local.Object) error {
	for _, change := range changes {
		if err := source.Send(f.ctx, change); err != nil {
			return err
		}
	}
	return nil
}

// waitAll waits for channels.
func (f *fleet) waitAll(happened []<-chan struct{}, what string) error {
	for _, one := range happened {
		if err := f.wait(one, what); err != nil {
			return err
		}
	}
	return nil
}

// delivered counts the calls of one handler.
type delivered struct {
	n, enough int
	// all is closed when it was enough.
	all chan struct{}
}

func newDelivered(enough int) *delivered { return &delivered{enough: enough, all: make(chan struct{})} }

func (d *delivered) note(*local.Object) {
	d.n++
	if d.n == d.enough {
		close(d.all)
	}
}
