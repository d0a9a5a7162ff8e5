package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// stride is from one object that changes to the next: neighbours in the list are not
// neighbours in time. It divides no number of objects that is asked for.
const stride = 7919

// changesOf are so many changes of objects, one after the other, made beforehand so that
// the source costs little. Their versions come after those of the list.
func (t Task) changesOf(source *local.SmallSource) []*local.Small {
	objects := local.Smalls(t.Items)
	changes := make([]*local.Small, t.Count)
	for n := range changes {
		changes[n] = local.NextSmall(objects[n*stride%t.Items], 2*source.Version()+uint64(n), n)
	}
	return changes
}

// updates sends Count changes through an informer to its handlers, and first the same to
// a receiver that drops them.
func (t Task) updates(ctx context.Context) (Result, error) {
	source := local.NewSmallSource(t.Items)
	changes := t.changesOf(source)
	f := newFleet(ctx)
	defer f.stop()
	alone, err := cost(func() error { return f.sendAlone(source, changes) })
	if err != nil {
		return Result{}, err
	}
	counters, err := f.addCounters(t, source, changes[len(changes)-1])
	if err != nil {
		return Result{}, err
	}
	result, err := t.timed(t.Count, func() error {
		if err := f.send(source, changes); err != nil {
			return err
		}
		for _, counter := range counters {
			if err := f.wait(counter.last, "the last change"); err != nil {
				return err
			}
		}
		return nil
	})
	result.Source = alone
	for _, counter := range counters {
		result.Calls += counter.calls.Load()
	}
	return result, err
}

// paceEvery is between two changes that come one at a time: 500 a second.
const paceEvery = 2 * time.Millisecond

// paced sends Count changes one at a time, at a steady pace: each finds everything asleep.
// What it costs to wake up for each is part of it, and is on every side.
func (t Task) paced(ctx context.Context) (Result, error) {
	source := local.NewSmallSource(t.Items)
	changes := t.changesOf(source)
	f := newFleet(ctx)
	defer f.stop()
	counters, err := f.addCounters(t, source, changes[len(changes)-1])
	if err != nil {
		return Result{}, err
	}
	return t.timed(t.Count, func() error {
		ticks := time.NewTicker(paceEvery)
		defer ticks.Stop()
		for _, change := range changes {
			select {
			case <-ticks.C:
			case <-f.ctx.Done():
				return f.ctx.Err()
			}
			if err := source.Send(f.ctx, change); err != nil {
				return err
			}
		}
		for _, counter := range counters {
			if err := f.wait(counter.last, "the last change"); err != nil {
				return err
			}
		}
		return nil
	})
}

// counter is a handler that counts.
type counter struct {
	calls atomic.Int64
	// ends is the last change that there will be, last is closed when it is there.
	ends *local.Small
	last chan struct{}
	_    [64]byte // what one counts is not in the next one's cache line
}

func (c *counter) update(object *local.Small) {
	c.calls.Add(1)
	if object == c.ends {
		close(c.last)
	}
}

// addCounters runs an informer with the task's handlers and returns when all have received
// of the first list.
func (f *fleet) addCounters(t Task, source *local.SmallSource, ends *local.Small) ([]*counter, error) {
	var counters []*counter
	var handlers []sides.Handler[*local.Small]
	var lists []*delivered
	for range t.Handlers {
		c, list := &counter{ends: ends, last: make(chan struct{})}, newDelivered(t.Items)
		counters, lists = append(counters, c), append(lists, list)
		handlers = append(handlers, sides.Handler[*local.Small]{Add: list.add, Update: c.update})
	}
	if _, err := f.addSmall(t, source, handlers...); err != nil {
		return nil, err
	}
	for _, list := range lists {
		if err := f.wait(list.all, "a handler's first list"); err != nil {
			return nil, err
		}
	}
	return counters, nil
}

func (f *fleet) send(source *local.SmallSource, changes []*local.Small) error {
	for _, change := range changes {
		if err := source.Send(f.ctx, change); err != nil {
			return err
		}
	}
	return nil
}

// sendAlone sends the changes to somebody who only receives.
func (f *fleet) sendAlone(source *local.SmallSource, changes []*local.Small) error {
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for range changes {
			select {
			case <-source.Events():
			case <-f.ctx.Done():
				return
			}
		}
	})
	defer receiving.Wait()
	return f.send(source, changes)
}
