package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// fleet are the informers of a task that run, until stop. After the first error its methods do
// nothing, as those of a bufio.Writer.
type fleet struct {
	task    Task
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
	err     error
}

func newFleet(ctx context.Context, task Task) *fleet {
	ctx, cancel := context.WithCancel(ctx)
	return &fleet{task: task, ctx: ctx, cancel: cancel}
}

// stop ends all informers and waits for them.
func (f *fleet) stop() {
	f.cancel()
	f.running.Wait()
}

// run makes the task's informer of a source, with its handlers, and runs it.
func (f *fleet) run(source *local.Source, handlers ...sides.Handler) *sides.Informer {
	if f.err != nil {
		return nil
	}
	t := f.task
	informer, err := sides.NewInformer(t.Side, t.Form, source, t.Delivery, handlers...)
	if err != nil {
		f.err = err
		return nil
	}
	f.running.Go(func() { informer.Run(f.ctx) })
	return informer
}

// runSynced runs an informer with a handler for each function, and returns when all have received
// the first list of so many objects.
func (f *fleet) runSynced(
	source *local.Source, objects int, updates ...func(*local.Object),
) *sides.Informer {
	var handlers []sides.Handler
	var lists []<-chan struct{}
	for _, update := range updates {
		list := newCounter(objects)
		lists = append(lists, list.done)
		handlers = append(handlers, sides.Handler{Add: list.note, Update: update})
	}
	informer := f.run(source, handlers...)
	f.wait("a handler's first list", lists...)
	return informer
}

// wait waits for channels that are closed when something has happened.
func (f *fleet) wait(what string, happened ...<-chan struct{}) {
	for _, one := range happened {
		if f.err != nil {
			return
		}
		select {
		case <-one:
		case <-f.ctx.Done():
			f.err = fmt.Errorf("%s did not come: %w", what, f.ctx.Err())
		}
	}
}

// lookPause is how often it is looked whether something has happened that closes no channel.
const lookPause = 20 * time.Microsecond

// waitUntil looks until something has happened.
func (f *fleet) waitUntil(what string, hasHappened func() bool) {
	for f.err == nil && !hasHappened() {
		if f.ctx.Err() != nil {
			f.err = fmt.Errorf("%s did not come: %w", what, f.ctx.Err())
		}
		time.Sleep(lookPause)
	}
}

// send sends changes, each when the one before has been received.
func (f *fleet) send(source *local.Source, changes ...*local.Object) {
	for _, change := range changes {
		if f.err != nil {
			return
		}
		f.err = source.Send(f.ctx, change)
	}
}

// counter is a handler that counts calls.
type counter struct {
	calls atomic.Int64
	// enough is the call that closes done, last the object whose call does so; the other one is
	// zero.
	enough int64
	last   *local.Object
	done   chan struct{}
	_      [64]byte // what one counts is not in the next one's cache line
}

func newCounter(enough int) *counter {
	return &counter{enough: int64(enough), done: make(chan struct{})}
}

// newCounterUntil makes a counter whose calls may be merged: it is done after the last change.
func newCounterUntil(last *local.Object) *counter {
	return &counter{last: last, done: make(chan struct{})}
}

func (c *counter) note(object *local.Object) {
	calls := c.calls.Add(1)
	if calls == c.enough || object == c.last {
		close(c.done)
	}
}

// ignore is a handler's function for what does not come, or does not matter.
func ignore(*local.Object) {}
