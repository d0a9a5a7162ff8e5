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
	first := newFleet(ctx)
	err := t.listOnce(first, local.NewPages(pageSize))
	first.stop()
	if err != nil {
		return Result{}, fmt.Errorf("warming up: %w", err)
	}
	source := local.NewPages(t.Items)
	source.Prepare(pageSize)
	f := newFleet(ctx)
	defer f.stop()
	result, err := timed(t.Items, func() error { return t.listOnce(f, source) })
	if err == nil && source.Lists() != 1 {
		err = fmt.Errorf("%d lists, not 1", source.Lists())
	}
	return result, err
}

func (t Task) listOnce(f *fleet, source *local.Pages) error {
	list := newDelivered(source.Objects())
	if _, err := f.add(t, source.Source, sides.Handler{Add: list.note}); err != nil {
		return err
	}
	return f.wait(list.all, "the handler's first list")
}

// changedList has the watch expire when a hundredth of all objects has changed, and looks
// at the heap and at the handler's calls while all is listed again. The source makes each
// page when it is asked for it, so that the live bytes are the informer's.
func (t Task) changedList(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	f := newFleet(ctx)
	defer f.stop()
	added := newDelivered(t.Items)
	updates := &counter{
		ends: local.Next(local.NewObject(0, 0), 3*source.Version(), 0),
		last: make(chan struct{}),
	}
	informer, err := f.add(t, source.Source, sides.Handler{Add: added.note, Update: updates.note})
	if err != nil {
		return Result{}, err
	}
	if err := f.wait(added.all, "the handler's first list"); err != nil {
		return Result{}, err
	}
	changed := source.Change(changedStep)

	var peak heapPeak
	result, err := timed(t.Items, func() error {
		return peak.during(func() error { return f.relist(source, updates) })
	})
	if err != nil {
		return Result{}, err
	}
	result.Peak = peak.bytes()
	result.Missed = peak.missed()
	result.Steady = liveHeap()
	// The handler that has the last change has all before it, and none after it. That one
	// is not the list's.
	result.Calls = updates.calls.Load() - 1 - int64(changed)
	runtime.KeepAlive(informer)
	return result, nil
}

// relist returns when the handler has received the change after the second list.
func (f *fleet) relist(source *local.Pages, updates *counter) error {
	if err := source.Expire(f.ctx); err != nil {
		return err
	}
	// Not before, or it would come before the list.
	if err := f.until(func() bool { return source.Lists() == 2 }, "the second list"); err != nil {
		return err
	}
	if err := source.Send(f.ctx, updates.ends); err != nil {
		return err
	}
	return f.wait(updates.last, "the change after the list")
}
