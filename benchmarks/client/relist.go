package client

import (
	"context"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// relist has the watch expire, so that everything is listed again, and counts what a
// handler hears of that. A change of one object comes after it: once the handler has
// heard of that, it has heard of all that comes before.
func (t Task) relist(ctx context.Context) (Result, error) {
	source := local.NewSource(t.Items, 0)
	var added, updated atomic.Int64
	var seen atomic.Pointer[string]
	f := newFleet(ctx)
	defer f.stop()
	informer, err := f.add(t, source, sides.Handler[*corev1.ConfigMap]{
		Add: func(*corev1.ConfigMap) { added.Add(1) },
		Update: func(object *corev1.ConfigMap) {
			updated.Add(1)
			seen.Store(&object.ResourceVersion)
		},
	})
	if err != nil {
		return Result{}, err
	}
	if err := f.synced(informer); err != nil {
		return Result{}, err
	}
	items := int64(t.Items)
	if err := f.until(func() bool { return added.Load() == items }, "the handler's first list"); err != nil {
		return Result{}, err
	}

	finish, err := t.profile()
	if err != nil {
		return Result{}, err
	}
	if err := source.Expire(f.ctx); err != nil {
		return Result{}, err
	}
	// Not before, or the list would have the change.
	if err := f.until(func() bool { return source.Lists() == 2 }, "the second list"); err != nil {
		return Result{}, err
	}
	marker, err := source.Update(f.ctx, 0)
	if err != nil {
		return Result{}, err
	}
	if err := f.until(func() bool { return seen.Load() != nil && *seen.Load() == marker }, "the change after the list"); err != nil {
		return Result{}, err
	}
	if lists := source.Lists(); lists != 2 {
		return Result{}, fmt.Errorf("%d lists, not 2", lists)
	}
	return Result{Items: t.Items, Calls: added.Load() - items + updated.Load() - 1}, finish()
}
