package client

import (
	"context"
	"runtime"
	"strconv"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// queued fills a queue with a change of each object and empties it again, until Count
// changes have come through. A queue has grown to its size before it is measured.
func (t Task) queued(ctx context.Context) (Result, error) {
	queue, err := sides.NewQueue(t.Side, t.Out)
	if err != nil {
		return Result{}, err
	}
	objects := local.Smalls(t.Items)
	round := func() error {
		for _, object := range objects {
			if err := queue.Put(object); err != nil {
				return err
			}
		}
		return queue.Take(len(objects))
	}
	if err := round(); err != nil {
		return Result{}, err
	}
	rounds := max(1, t.Count/t.Items)
	return t.timed(rounds*t.Items, func() error {
		for range rounds {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := round(); err != nil {
				return err
			}
		}
		return nil
	})
}

// known has a queue replace all objects by later states, or resync them, Count times, and
// empties it in between, which is not measured. It has grown to its size before, by a fill
// that is not measured either: Heap is what the queue has by then, without the objects.
func (t Task) known(context.Context) (Result, error) {
	objects := local.Smalls(t.Items)
	queue, err := sides.NewKnownQueue(t.Side, asList(objects))
	if err != nil {
		return Result{}, err
	}
	list := asList(later(objects, 1))
	fill := func() error { return queue.Replace(list, strconv.Itoa(2*t.Items)) }
	if t.Work == QueueResync {
		fill = queue.Resync
	}
	empty := int64(liveHeap())
	if err := fill(); err != nil {
		return Result{}, err
	}
	result := Result{Items: t.Items * t.Count, Heap: int64(liveHeap()) - empty}
	finish, err := t.profile()
	if err != nil {
		return Result{}, err
	}
	for range t.Count {
		if err := queue.Take(t.Items); err != nil {
			return Result{}, err
		}
		filled, err := cost(fill)
		if err != nil {
			return Result{}, err
		}
		result.add(filled)
	}
	if err := queue.Take(t.Items); err != nil {
		return Result{}, err
	}
	runtime.KeepAlive(list)
	return result, finish()
}
