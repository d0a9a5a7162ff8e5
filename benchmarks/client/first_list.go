package client

import (
	"context"
	"fmt"
	"time"

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
	err := t.listOnce(first, local.NewSmallSource(pageSize))
	first.stop()
	if err != nil {
		return Result{}, fmt.Errorf("warming up: %w", err)
	}
	source := local.NewSmallSource(t.Items)
	source.Prepare(pageSize)
	f := newFleet(ctx)
	defer f.stop()
	result, err := t.timed(t.Items, func() error { return t.listOnce(f, source) })
	if err == nil && source.Lists() != 1 {
		err = fmt.Errorf("%d lists, not 1", source.Lists())
	}
	return result, err
}

func (t Task) listOnce(f *fleet, source *local.SmallSource) error {
	list := newDelivered(source.Objects())
	if _, err := f.addSmall(t, source, sides.Handler[*local.Small]{Add: list.add}); err != nil {
		return err
	}
	return f.wait(list.all, "the handler's first list")
}

// changedList has the watch expire when a hundredth of all objects has changed, and looks
// at the heap and at the handler's calls while all is listed again. The source makes each
// page when it is asked for it, so that the live bytes are the informer's.
func (t Task) changedList(ctx context.Context) (Result, error) {
	source := local.NewSmallSource(t.Items)
	l := &relisted{fleet: newFleet(ctx), added: newDelivered(t.Items)}
	defer l.stop()
	informer, err := l.addSmall(t, source, sides.Handler[*local.Small]{Add: l.added.add, Update: l.update})
	if err != nil {
		return Result{}, err
	}
	if err := l.synced(informer); err != nil {
		return Result{}, err
	}
	if err := l.wait(l.added.all, "the handler's first list"); err != nil {
		return Result{}, err
	}
	changed := source.Change(changedStep)
	last := local.NextSmall(local.NewSmall(0, 0), 3*source.Version(), 0)
	l.expect(last)

	var peak heapPeak
	result, err := t.timed(t.Items, func() error {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		peak.begin(ticker.C)
		defer peak.end()
		if err := source.Expire(l.ctx); err != nil {
			return err
		}
		// Not before, or it would come before the list.
		if err := l.until(func() bool { return source.Lists() == 2 }, "the second list"); err != nil {
			return err
		}
		if err := source.Send(l.ctx, last); err != nil {
			return err
		}
		return l.wait(l.updated, "the change after the list")
	})
	if err != nil {
		return Result{}, err
	}
	result.Peak, result.Missed, result.Steady = peak.bytes(), peak.missed(), liveHeap()
	// The handler that has the last change has all before it, and none after it. That one
	// is not the list's.
	result.Calls = l.calls - 1 - int64(changed)
	_ = informer.Get("") // it must be there until here
	return result, nil
}

// relisted is an informer's handler while a list is read again.
type relisted struct {
	*fleet
	added *delivered
	// last ends it; calls are how many updates there were until then. Only the handler
	// uses them until updated is closed.
	last    *local.Small
	calls   int64
	updated chan struct{}
}

// expect must be called before there are updates.
func (l *relisted) expect(last *local.Small) { l.last, l.updated = last, make(chan struct{}) }

func (l *relisted) update(object *local.Small) {
	l.calls++
	if object == l.last {
		close(l.updated)
	}
}

// delivered counts the calls of one handler.
type delivered struct {
	n, enough int
	// all is closed when it was enough.
	all chan struct{}
}

func newDelivered(enough int) *delivered { return &delivered{enough: enough, all: make(chan struct{})} }

func (t *delivered) add(*local.Small) {
	if t.n++; t.n == t.enough {
		close(t.all)
	}
}
