package client

import (
	"context"
	"runtime"
	"sync"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// pending has all handlers but the last hang in their first change, sends Count changes
// more, and looks at the heap when the last handler has received all of them. The
// objects do not count: the source has them, before and afterwards.
func (t Task) pending(ctx context.Context) (Result, error) {
	source := local.NewSmallSource(t.Items)
	hangs, count := t.Handlers-1, t.Count
	t.Count += 1
	changes := t.changesOf(source)
	release := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	f := newFleet(ctx)
	defer f.stop()
	defer goOn()

	var handlers []sides.Handler[*local.Small]
	var waits []<-chan struct{}
	for range hangs {
		list, hung := newDelivered(t.Items), make(chan struct{})
		hang := sync.OnceFunc(func() {
			close(hung)
			<-release
		})
		waits = append(waits, list.all, hung)
		handlers = append(handlers, sides.Handler[*local.Small]{Add: list.add, Update: func(*local.Small) { hang() }})
	}
	list, first, last := newDelivered(t.Items), newDelivered(1), newDelivered(1+count)
	handlers = append(handlers, sides.Handler[*local.Small]{Add: list.add, Update: func(object *local.Small) {
		first.add(object)
		last.add(object)
	}})
	waits = append(waits, list.all, first.all)
	informer, err := f.addSmall(t, source, handlers...)
	if err != nil {
		return Result{}, err
	}
	// A change that came before a handler has received its object might be part of that.
	for n := 0; n < len(waits); n += 2 {
		if err := f.wait(waits[n], "a handler's first list"); err != nil {
			return Result{}, err
		}
	}
	if err := source.Send(f.ctx, changes[0]); err != nil {
		return Result{}, err
	}
	for n := 1; n < len(waits); n += 2 {
		if err := f.wait(waits[n], "a handler's first call"); err != nil {
			return Result{}, err
		}
	}

	before := int64(liveHeap())
	result, err := t.timed(count, func() error {
		if err := f.send(source, changes[1:]); err != nil {
			return err
		}
		return f.wait(last.all, "the last change")
	})
	if err != nil {
		return Result{}, err
	}
	result.Heap = int64(liveHeap()) - before
	runtime.KeepAlive(changes)
	runtime.KeepAlive(informer)
	return result, nil
}
