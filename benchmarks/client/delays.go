package client

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
)

// delayPause is between two bursts: all goroutines have nothing to do by then.
const delayPause = time.Millisecond

// delays sends Count bursts of changes and times each from when its burst has arrived at
// the source until a handler is called.
func (t Task) delays(ctx context.Context) (Result, error) {
	source := local.NewPages(t.Items)
	changes := changesOf(source, t.Count*t.Burst)
	f := newFleet(ctx)
	defer f.stop()
	clock := &delayClock{began: time.Now(), arrived: make([]time.Duration, t.Count), burst: t.Burst}
	var handlers []*delayed
	var updates []func(*local.Object)
	for range t.Handlers {
		handler := &delayed{clock: clock, delays: make([]time.Duration, 0, len(changes))}
		handlers = append(handlers, handler)
		updates = append(updates, handler.note)
	}
	if err := f.addHandlers(t, source, updates); err != nil {
		return Result{}, err
	}

	result, err := timed(len(changes), func() error {
		for n := range t.Count {
			time.Sleep(delayPause)
			clock.arrived[n] = time.Since(clock.began)
			if err := f.send(source.Source, changes[n*t.Burst:(n+1)*t.Burst]); err != nil {
				return err
			}
			want := int64((n + 1) * t.Burst * t.Handlers)
			if err := f.until(func() bool { return clock.calls.Load() == want }, "the handlers' calls"); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Result{}, err
	}
	var all []time.Duration
	for _, handler := range handlers {
		all = append(all, handler.delays...)
	}
	result.setDelays(all)
	return result, nil
}

// delayClock knows when bursts arrived. What comes through the source comes after its time
// has been written.
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

// setDelays sets the figures of single operations.
func (r *Result) setDelays(delays []time.Duration) {
	slices.Sort(delays)
	at := func(part float64) float64 { return delays[int(part*float64(len(delays)-1))].Seconds() }
	r.Median = at(0.5)
	r.P99 = at(0.99)
}
