package client

import (
	"context"
	"sync"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
)

// stride is from one object that changes to the next: neighbours in the list are not neighbours in
// time. It divides no number of objects that is asked for.
const stride = 7919

// changesOf are so many changes of objects, one after the other, made beforehand so that the source
// costs little. Their versions come after those of the list.
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

// updates sends Count changes through an informer to its handlers, and first the same to a receiver
// that drops them.
func (t Task) updates(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	changes := changesOf(source, t.Count)
	f := newFleet(ctx, t)
	defer f.stop()
	alone := measured(func() { f.sendAlone(source.Source, changes) })
	counters := f.runCounters(source, changes[t.Count-1])
	all := measured(func() {
		f.send(source.Source, changes...)
		f.waitForAll(counters)
	})
	calls := 0.0
	for _, counter := range counters {
		calls += float64(counter.calls.Load())
	}
	figures := all.minus(alone).per("event", t.Count)
	return figures.with(Result{"handler calls/event": calls / float64(t.Count)}), f.err
}

// sendAlone sends the changes to a receiver that drops them.
func (f *fleet) sendAlone(source *local.Source, changes []*local.Object) {
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
	f.send(source, changes...)
	receiving.Wait()
}

// runCounters runs an informer whose handlers count until the last change.
func (f *fleet) runCounters(source *local.Pages, last *local.Object) []*counter {
	var counters []*counter
	var updates []func(*local.Object)
	for range f.task.Handlers {
		counter := newCounterUntil(last)
		counters = append(counters, counter)
		updates = append(updates, counter.note)
	}
	f.runSynced(source.Source, f.task.Items, updates...)
	return counters
}

func (f *fleet) waitForAll(counters []*counter) {
	for _, counter := range counters {
		f.wait("the last change", counter.done)
	}
}

// paceEvery is between two changes that come one at a time: 500 a second.
const paceEvery = 2 * time.Millisecond

// paced sends Count changes one at a time, at a steady pace: each finds everything asleep. What it
// costs to wake up for each is part of it, and is on every side.
func (t Task) paced(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	changes := changesOf(source, t.Count)
	f := newFleet(ctx, t)
	defer f.stop()
	counters := f.runCounters(source, changes[t.Count-1])
	spent := measured(func() {
		ticks := time.NewTicker(paceEvery)
		defer ticks.Stop()
		for _, change := range changes {
			<-ticks.C
			f.send(source.Source, change)
		}
		f.waitForAll(counters)
	})
	return spent.per("event", t.Count), f.err
}
