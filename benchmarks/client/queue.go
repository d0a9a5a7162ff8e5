package client

import (
	"context"

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
