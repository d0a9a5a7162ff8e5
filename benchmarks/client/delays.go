package client

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// delayPause is between two bursts: all goroutines have nothing to do by then.
const delayPause = time.Millisecond

// delays sends Count bursts of changes and times each from when its burst has arrived at
// the source until a handler is called.
func (t Task) delays(ctx context.Context) (Result, error) {
	bursts := t.Count
	t.Count *= t.Burst
	source := local.NewSmallSource(t.Items)
	changes := t.changesOf(source)
	f := newFleet(ctx)
	defer f.stop()
	clock := &delayClock{began: time.Now(), arrived: make([]time.Duration, bursts), burst: t.Burst}
	var handlers []sides.Handler[*local.Small]
	var lists []*delivered
	for range t.Handlers {
		handler := &delayed{delayClock: clock, delays: make([]time.Duration, 0, t.Count)}
		clock.handlers = append(clock.handlers, handler)
		list := newDelivered(t.Items)
		lists = append(lists, list)
		handlers = append(handlers, sides.Handler[*local.Small]{Add: list.add, Update: handler.update})
	}
	if _, err := f.addSmall(t, source, handlers...); err != nil {
		return Result{}, err
	}
	for _, list := range lists {
		if err := f.wait(list.all, "a handler's first list"); err != nil {
			return Result{}, err
		}
	}
	result, err := t.timed(t.Count, func() error {
		for n := range bursts {
			time.Sleep(delayPause)
			clock.arrived[n] = time.Since(clock.began)
			if err := f.send(source, changes[n*t.Burst:(n+1)*t.Burst]); err != nil {
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
	for _, handler := range clock.handlers {
		all = append(all, handler.delays...)
	}
	result.setDelays(all)
	return result, nil
}

// delayClock knows when bursts arrived. What comes through the source comes after its time
// has been written.
type delayClock struct {
	began    time.Time
	arrived  []time.Duration
	burst    int
	handlers []*delayed
	calls    atomic.Int64
}

// delayed is a handler that notes how late it is called.
type delayed struct {
	*delayClock
	delays []time.Duration
}

func (d *delayed) update(object *local.Small) {
	arrived := d.arrived[int(object.Generation)/d.burst]
	d.delays = append(d.delays, time.Since(d.began)-arrived)
	d.calls.Add(1)
}

// setDelays sets the figures of single operations.
func (r *Result) setDelays(delays []time.Duration) {
	if len(delays) == 0 {
		return
	}
	slices.Sort(delays)
	at := func(part float64) float64 { return delays[int(part*float64(len(delays)-1))].Seconds() }
	r.Median, r.P99, r.Longest = at(0.5), at(0.99), at(1)
}
