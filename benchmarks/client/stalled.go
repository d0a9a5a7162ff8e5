package client

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// stalled has a handler hang while one object is updated as often as the task has items,
// and looks at the live heap: several times meanwhile, of which the most counts, and once
// the handler has received everything.
func (t Task) stalled(ctx context.Context) (Result, error) {
	source := local.NewShared(local.NewLarge(1))
	h := newHangingHandler()
	f := newFleet(ctx)
	defer f.stop()
	defer h.release()
	informer, err := f.add(t, source, sides.Handler{Add: h.list.note, Update: h.update})
	if err != nil {
		return Result{}, err
	}
	// Before the handler has received the object, an update might become part of that.
	if err := f.wait(h.list.all, "the handler's first list"); err != nil {
		return Result{}, err
	}
	if err := source.Send(f.ctx, local.NewLarge(2)); err != nil {
		return Result{}, err
	}
	if err := f.wait(h.hangs, "the handler's first call"); err != nil {
		return Result{}, err
	}

	start := int64(liveHeap())
	result := Result{Items: t.Items}
	var last string
	for n := 1; n <= t.Items; n++ {
		object := local.NewLarge(uint64(n + 2))
		last = object.ResourceVersion
		if err := source.Send(f.ctx, object); err != nil {
			return Result{}, err
		}
		if t.looksAfter(n) {
			if err := f.stored(informer, last); err != nil {
				return Result{}, err
			}
			result.Heap = max(result.Heap, int64(liveHeap())-start)
		}
	}
	h.release()
	isDrained := func() bool { return *h.seen.Load() == last }
	if err := f.until(isDrained, "the handler's last call"); err != nil {
		return Result{}, err
	}
	result.Drained = max(0, int64(liveHeap())-start)
	runtime.KeepAlive(informer)
	return result, nil
}

// hangingHandler hangs in its first update until it is released.
type hangingHandler struct {
	list *delivered
	// hangs is closed in the first update, on which the handler then waits.
	hangs   chan struct{}
	goOn    chan struct{}
	release func()
	// seen is the version that was received last.
	seen atomic.Pointer[string]
}

func newHangingHandler() *hangingHandler {
	h := &hangingHandler{list: newDelivered(1), hangs: make(chan struct{}), goOn: make(chan struct{})}
	h.release = sync.OnceFunc(func() { close(h.goOn) })
	return h
}

func (h *hangingHandler) update(object *local.Object) {
	if h.seen.Swap(&object.ResourceVersion) == nil {
		close(h.hangs)
		<-h.goOn
	}
}

// looksAfter says whether the heap is looked at after the n-th update: ten times, and
// after 1,000, just before an Ordered backlog of one object begins to merge.
func (t Task) looksAfter(n int) bool {
	return n == min(t.Items, 1000) || n%max(1, t.Items/10) == 0
}
