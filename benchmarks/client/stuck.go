package client

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache/benchmarks/local"
)

const mebi = 1 << 20

// stalled has a handler hang while one object is updated as often as the task has items, and looks
// at the live heap: several times meanwhile, of which the most counts, and once the handler has
// received everything.
func (t Task) stalled(ctx context.Context) (Result, error) {
	source := local.NewShared(local.NewLarge(1))
	h := newHangingHandler()
	f := newFleet(ctx, t)
	defer f.stop()
	defer h.release()
	// Before the handler has received the object, an update might become part of that.
	informer := f.runSynced(source, 1, h.update)
	f.send(source, local.NewLarge(2))
	f.wait("the handler's first call", h.hangs)

	start := liveHeap()
	most := 0.0
	var last string
	for n := 1; n <= t.Items; n++ {
		object := local.NewLarge(uint64(n + 2))
		last = object.ResourceVersion
		f.send(source, object)
		if t.looksAfter(n) {
			isStored := func() bool { return informer.Get(local.Key(0)).ResourceVersion == last }
			f.waitUntil("the last change", isStored)
			most = max(most, liveHeap()-start)
		}
	}
	h.release()
	f.waitUntil("the handler's last call", func() bool { return *h.seen.Load() == last })
	drained := max(0, liveHeap()-start)
	runtime.KeepAlive(informer)
	return Result{"MiB more, at most": most / mebi, "MiB more, drained": drained / mebi}, f.err
}

// looksAfter says whether the heap is looked at after the n-th update: ten times, and after 1,000,
// just before an Ordered backlog of one object begins to merge.
func (t Task) looksAfter(n int) bool {
	return n == min(t.Items, 1000) || n%max(1, t.Items/10) == 0
}

// hangingHandler hangs in its first update until it is released.
type hangingHandler struct {
	// hangs is closed in the first update, which then waits for goOn.
	hangs   chan struct{}
	goOn    chan struct{}
	release func()
	// seen is the version that was received last.
	seen atomic.Pointer[string]
}

func newHangingHandler() *hangingHandler {
	h := &hangingHandler{hangs: make(chan struct{}), goOn: make(chan struct{})}
	h.release = sync.OnceFunc(func() { close(h.goOn) })
	return h
}

func (h *hangingHandler) update(object *local.Object) {
	if h.seen.Swap(&object.ResourceVersion) == nil {
		close(h.hangs)
		<-h.goOn
	}
}

// pending has all handlers but the last hang in their first change, sends Count changes more, and
// looks at the heap when the last handler has received all of them. The objects do not count: the
// source has them, before and afterwards.
func (t Task) pending(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	changes := changesOf(source, 1+t.Count)
	f := newFleet(ctx, t)
	defer f.stop()
	first := newCounter(1)
	all := newCounter(len(changes))
	var called []<-chan struct{}
	var updates []func(*local.Object)
	for range t.Handlers - 1 {
		h := newHangingHandler()
		defer h.release()
		called = append(called, h.hangs)
		updates = append(updates, h.update)
	}
	called = append(called, first.done)
	updates = append(updates, func(object *local.Object) {
		first.note(object)
		all.note(object)
	})
	f.runSynced(source.Source, t.Items, updates...)
	f.send(source.Source, changes[0])
	f.wait("a handler's first call", called...)

	before := liveHeap()
	f.send(source.Source, changes[1:]...)
	f.wait("the last change", all.done)
	heap := liveHeap() - before
	runtime.KeepAlive(changes)
	return Result{"B/pending event": heap / float64(t.Count)}, f.err
}
