package calls

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// beside measures single calls of goroutines while another goroutine works without a pause.
type beside struct {
	rounds int
	// callers is the number of goroutines whose calls are measured.
	callers int
	// calls is the number of calls of each of them in a round.
	calls int
	// pause is between two calls.
	pause time.Duration
	// part says which call counts: 0.99 is the 99th percentile, 1 the longest call.
	part float64
}

// contenders are what goroutines of one side do.
type contenders struct {
	call func(caller, n int) error
	// other is what the goroutine does that is not measured.
	other func(n int) error
}

// measure makes both sides take turns.
func (b beside) measure(theirs, ours contenders) (Result, error) {
	sides := [2]contenders{theirs, ours}
	return interleaved(b.rounds, func(side int) (float64, error) {
		collect()
		delays, err := b.round(sides[side])
		if err != nil {
			return 0, err
		}
		return float64(quantile(delays, b.part)), nil
	})
}

// round returns how long the calls took.
func (b beside) round(side contenders) ([]time.Duration, error) {
	other := startOther(side.other)
	delays := make([][]time.Duration, b.callers)
	failures := make([]error, b.callers)
	var callers sync.WaitGroup
	for caller := range b.callers {
		callers.Go(func() {
			delays[caller], failures[caller] = b.timed(func(n int) error { return side.call(caller, n) })
		})
	}
	callers.Wait()
	failures = append(failures, other.stop())
	return slices.Concat(delays...), errors.Join(failures...)
}

// timed measures the calls of one goroutine.
func (b beside) timed(call func(n int) error) ([]time.Duration, error) {
	delays := make([]time.Duration, b.calls)
	for n := range delays {
		if b.pause > 0 {
			time.Sleep(b.pause)
		}
		began := time.Now()
		if err := call(n); err != nil {
			return nil, err
		}
		delays[n] = time.Since(began)
	}
	return delays, nil
}

// other is a goroutine that does the same again and again.
type other struct {
	stopped atomic.Bool
	running sync.WaitGroup
	failure error
}

// startOther returns when the goroutine has done it once.
func startOther(step func(n int) error) *other {
	o := &other{}
	begun := make(chan struct{})
	o.running.Go(func() {
		for n := 0; !o.stopped.Load() && o.failure == nil; n++ {
			o.failure = step(n)
			if n == 0 {
				close(begun)
			}
		}
	})
	<-begun
	return o
}

func (o *other) stop() error {
	o.stopped.Store(true)
	o.running.Wait()
	return o.failure
}
