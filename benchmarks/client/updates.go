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
func changesOf(source *local.Pages, count int) []*local.Object {
	objects := make([]*local.Object, source.Objects())
	for i := range objects {
		objects[i] = local.NewObject(i, uint64(i+1))
	}
	changes := make([]*local.Object, count)
	for n := range changes {
		object := objects[n*stride%len(objects)]
		changes[n] = local.Next(object, 2*source.Version()+uint64(n), n)
	}
	return changes
}

// updates sends Count changes through an informer to its handlers, and first the same to
// a receiver that drops them.
func (t Task) updates(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	changes := changesOf(source, t.Count)
	f := newFleet(ctx)
	defer f.stop()
	alone, err := cost(func() error { return f.sendAlone(source.Source, changes) })
	if err != nil {
		return Result{}, err
	}
	counters, err := f.addCounters(t, source, changes[len(changes)-1])
	if err != nil {
		return Result{}, err
	}
	result, err := timed(t.Count, func() error {
		if err := f.send(source.Source, changes); err != nil {
			return err
		}
		return f.waitAll(lastOf(counters), "the last change")
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
	source := local.NewPages(t.Items)
	changes := changesOf(source, t.Count)
	f := newFleet(ctx)
	defer f.stop()
	counters, err := f.addCounters(t, source, changes[len(changes)-1])
	if err != nil {
		return Result{}, err
	}
	return timed(t.Count, func() error {
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
		return f.waitAll(lastOf(counters), "the last change")
	})
}

// counter is a handler that counts.
type counter struct {
	calls atomic.Int64
	// ends is the last change that there will be, last is closed when it is there.
	ends *local.Object
	last chan struct{}
	_    [64]byte // what one counts is not in the next one's cache line
}

func (c *counter) note(object *local.Object) {
	c.calls.Add(1)
	if object == c.ends {
		close(c.last)
	}
}

func lastOf(counters []*counter) []<-chan struct{} {
	var all []<-chan struct{}
	for _, counter := range counters {
		all = append(all, counter.last)
	}
	return all
}

// addCounters runs an informer with the task's handlers.
func (f *fleet) addCounters(t Task, source *local.Pages, ends *local.Object) ([]*counter, error) {
	var counters []*counter
	var updates []func(*local.Object)
	for range t.Handlers {
		counter := &counter{ends: ends, last: make(chan struct{})}
		counters = append(counters, counter)
		updates = append(updates, counter.note)
	}
	return counters, f.addHandlers(t, source, updates)
}

// addHandlers runs an informer with a handler for each function, and returns when all have
// received the first list.
func (f *fleet) addHandlers(t Task, source *local.Pages, updates []func(*local.Object)) error {
	var handlers []sides.Handler
	var lists []<-chan struct{}
	for _, update := range updates {
		list := newDelivered(t.Items)
		lists = append(lists, list.all)
		handlers = append(handlers, sides.Handler{Add: list.note, Update: update})
	}
	if _, err := f.add(t, source.Source, handlers...); err != nil {
		return err
	}
	return f.waitAll(lists, "a handler's first list")
}

// sendAlone sends the changes to a receiver that drops them.
func (f *fleet) sendAlone(source *local.Source, changes []*local.Object) error {
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
