package client

import (
	"context"
	"runtime"
	"sync"

	"github.com/watchmirror/cache/benchmarks/local"
)

// pending has all handlers but the last hang in their first change, sends Count changes
// more, and looks at the heap when the last handler has received all of them. The
// objects do not count: the source has them, before and afterwards.
func (t Task) pending(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	changes := changesOf(source, 1+t.Count)
	release := make(chan struct{})
	f := newFleet(ctx)
	defer f.stop()
	defer close(release)

	var updates []func(*local.Object)
	var called []<-chan struct{}
	for range t.Handlers - 1 {
		hung := make(chan struct{})
		hang := sync.OnceFunc(func() {
			close(hung)
			<-release
		})
		called = append(called, hung)
		updates = append(updates, func(*local.Object) { hang() })
	}
	first := newDelivered(1)
	last := newDelivered(len(changes))
	called = append(called, first.all)
	updates = append(updates, func(object *local.Object) {
		first.note(object)
		last.note(object)
	})
	if err := f.addHandlers(t, source, updates); err != nil {
		return Result{}, err
	}
	if err := source.Send(f.ctx, changes[0]); err != nil {
		return Result{}, err
	}
	if err := f.waitAll(called, "a handler's first call"); err != nil {
		return Result{}, err
	}

	before := int64(liveHeap())
	result, err := timed(t.Count, func() error {
		if err := f.send(source.Source, changes[1:]); err != nil {
			return err
		}
		return f.wait(last.all, "the last change")
	})
	if err != nil {
		return Result{}, err
	}
	result.Heap = int64(liveHeap()) - before
	runtime.KeepAlive(changes)
	return result, nil
}
