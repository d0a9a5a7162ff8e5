package client

import (
	"context"
	"fmt"
	"runtime"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// changedStep is which objects have changed when a list is read again: 1 %.
const changedStep = 100

// firstList runs an informer with one handler until that has received all listed objects.
// The pages are made before, and are not counted.
func (t Task) firstList(ctx context.Context) (Result, error) {
	// Work done once in a process is no cost of a list.
	first := newFleet(ctx, t)
	first.runSynced(local.NewPages(sides.PageSize).Source, sides.PageSize, ignore)
	first.stop()
	if first.err != nil {
		return nil, fmt.Errorf("warming up: %w", first.err)
	}

	source := local.NewPages(t.Items)
	source.Prepare(sides.PageSize)
	f := newFleet(ctx, t)
	defer f.stop()
	spent := measured(func() { f.runSynced(source.Source, t.Items, ignore) })
	if f.err == nil && source.Lists() != 1 {
		f.err = fmt.Errorf("%d lists, not 1", source.Lists())
	}
	return spent.per("object", t.Items), f.err
}

// changedList has the watch expire when a hundredth of all objects has changed, and looks at the
// heap and at the handler's calls while all is listed again. The source makes each page when it is
// asked for it, so that the live bytes are the informer's.
func (t Task) changedList(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	last := local.Next(local.NewObject(0, 0), 3*source.Version(), 0)
	updates := newCounterUntil(last)
	f := newFleet(ctx, t)
	defer f.stop()
	informer := f.runSynced(source.Source, t.Items, updates.note)
	changed := source.Change(changedStep)
	peak := peakDuring(func() {
		f.relist(source)
		f.send(source.Source, last)
		f.wait("the change after the list", updates.done)
	})
	steady := liveHeap()
	runtime.KeepAlive(informer)
	// The handler that has the last change has all before it, and none after it. That one is not
	// the list's.
	unchanged := float64(updates.calls.Load()) - 1 - float64(changed)
	return Result{
		"peak / steady":               float64(peak) / steady,
		"calls for unchanged objects": unchanged,
	}, f.err
}

// relist ends the watch and returns when all has been listed again. A change that was sent before
// would come before the list.
func (f *fleet) relist(source *local.Pages) {
	if f.err == nil {
		f.err = source.Expire(f.ctx)
	}
	f.waitUntil("the second list", func() bool { return source.Lists() == 2 })
}
