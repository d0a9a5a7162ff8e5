package client

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
)

// delayPause is between two bursts: all goroutines have nothing to do by then.
const delayPause = time.Millisecond

// delays sends Count bursts of changes and times each from when its burst has arrived at the source
// until a handler is called.
func (t Task) delays(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	changes := changesOf(source, t.Count*t.Burst)
	f := newFleet(ctx, t)
	defer f.stop()
	clock := &delayClock{began: time.Now(), arrived: make([]time.Duration, t.Count), burst: t.Burst}
	var handlers []*delayed
	var updates []func(*local.Object)
	for range t.Handlers {
		handler := &delayed{clock: clock, delays: make([]time.Duration, 0, len(changes))}
		handlers = append(handlers, handler)
		updates = append(updates, handler.note)
	}
	f.runSynced(source.Source, t.Items, updates...)
	runtime.GC()
	for n := range t.Count {
		time.Sleep(delayPause)
		clock.arrived[n] = time.Since(clock.began)
		f.send(source.Source, changes[n*t.Burst:(n+1)*t.Burst]...)
		want := int64((n + 1) * t.Burst * t.Handlers)
		f.waitUntil("the handlers' calls", func() bool { return clock.calls.Load() == want })
	}
	if f.err != nil {
		return nil, f.err
	}
	var all []time.Duration
	for _, handler := range handlers {
		all = append(all, handler.delays...)
	}
	return delayFigures(all), nil
}

// delayClock knows when bursts arrived. What comes through the source comes after its time has been
// written.
type delayClock struct {
	began   time.Time
	arrived []time.Duration
	burst   int
	calls   atomic.Int64
}

// delayed is a handler that notes how late it is called.
type delayed struct {
	clock  *delayClock
	delays []time.Duration
}

func (d *delayed) note(object *local.Object) {
	arrived := d.clock.arrived[int(object.Generation)/d.clock.burst]
	d.delays = append(d.delays, time.Since(d.clock.began)-arrived)
	d.clock.calls.Add(1)
}

func delayFigures(delays []time.Duration) Result {
	slices.Sort(delays)
	last := len(delays) - 1
	return Result{
		"us to a handler, p50": microseconds(delays[last/2]),
		"us to a handler, p99": microseconds(delays[last*99/100]),
	}
}
