package client

import (
	"context"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// stalledSize is the data of the object that changes: with its metadata it is 1 KiB of
// JSON, and 1.7 KiB as a Go object.
const stalledSize = 900

// stalled has a handler hang while one object is updated as often as the task has items,
// and looks at the live heap: several times meanwhile, of which the most counts, and once
// the handler has received everything.
func (t Task) stalled(ctx context.Context) (Result, error) {
	source := local.NewSource(1, stalledSize)
	added, hangs, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var seen atomic.Pointer[string]
	handler := sides.Handler[*corev1.ConfigMap]{
		Add: func(*corev1.ConfigMap) { close(added) },
		Update: func(object *corev1.ConfigMap) {
			if seen.Load() == nil {
				close(hangs)
				<-release
			}
			seen.Store(&object.ResourceVersion)
		},
	}
	goOn := sync.OnceFunc(func() { close(release) })
	f := newFleet(ctx)
	defer f.stop()
	defer goOn()
	informer, err := f.add(t, source, handler)
	if err != nil {
		return Result{}, err
	}
	last, err := stall(f, source, added, hangs)
	if err != nil {
		return Result{}, err
	}

	finish, err := t.profile()
	if err != nil {
		return Result{}, err
	}
	start := int64(liveHeap())
	result := Result{Items: t.Items}
	for n := 1; n <= t.Items; n++ {
		if last, err = source.Update(f.ctx, 0); err != nil {
			return Result{}, err
		}
		if t.looksAfter(n) {
			if err := f.stored(informer, last); err != nil {
				return Result{}, err
			}
			result.Heap = max(result.Heap, int64(liveHeap())-start)
		}
	}
	goOn()
	if err := f.until(func() bool { return seen.Load() != nil && *seen.Load() == last }, "the handler's last call"); err != nil {
		return Result{}, err
	}
	result.Drained = max(0, int64(liveHeap())-start)
	return result, finish()
}

// stall updates the object once, so that the handler hangs. Before it has received the
// object, an update might become part of that.
func stall(f *fleet, source *local.Source, added, hangs <-chan struct{}) (version string, err error) {
	if err := f.wait(added, "the handler's first list"); err != nil {
		return "", err
	}
	if version, err = source.Update(f.ctx, 0); err != nil {
		return "", err
	}
	return version, f.wait(hangs, "the handler's first call")
}

// looksAfter says whether the heap is looked at after the n-th update: ten times, and
// after 1,000, just before an Ordered backlog of one object begins to merge.
func (t Task) looksAfter(n int) bool {
	return n == min(t.Items, 1000) || n%max(1, t.Items/10) == 0
}
