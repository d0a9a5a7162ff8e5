package client

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/benchmarks/local"
)

// writerPause is between two writes, so that they meet a reader at any place.
const writerPause = 200 * time.Microsecond

// beside is somebody who does something again and again while something else is measured.
type beside struct {
	ended   atomic.Bool
	running sync.WaitGroup
	longest time.Duration
	failed  error
}

// run does the step until end, without a pause. It returns once that has begun: so what is
// measured is beside it, however busy the machine is.
func (b *beside) run(step func(n int) error) {
	begun := make(chan struct{})
	b.running.Go(func() {
		for n := 0; !b.ended.Load() && b.failed == nil; n++ {
			began := time.Now()
			b.failed = step(n)
			b.longest = max(b.longest, time.Since(began))
			if n == 0 {
				close(begun)
			}
		}
	})
	<-begun
}

// end waits for the last step, and says how long the longest took.
func (b *beside) end() (longest time.Duration, err error) {
	b.ended.Store(true)
	b.running.Wait()
	return b.longest, b.failed
}

// storeReplace replaces everything Count times; then again, while somebody looks for one
// key after the other.
func (t Task) storeReplace(ctx context.Context) (Result, error) {
	store, objects, err := t.writable(ctx)
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	var lists [][]any
	for round := range 2 * t.Count {
		lists = append(lists, asList(later(objects, round+1)))
	}
	next := 0
	replace := func() error {
		for range t.Count {
			if err := store.Replace(lists[next]); err != nil {
				return err
			}
			lists[next] = nil // the store has it now
			next++
		}
		return nil
	}
	result, err := t.timed(t.Count, replace)
	if err != nil || !t.Busy {
		return result, err
	}
	keys := make([]string, t.Items)
	for n, i := range shuffled(t.Items) {
		keys[n] = t.Keys.Key(i)
	}
	reader := &beside{}
	reader.run(func(n int) error {
		store.Get(keys[n%len(keys)])
		return nil
	})
	err = replace()
	longest, failed := reader.end()
	if err == nil {
		err = failed
	}
	result.Longest = longest.Seconds()
	return result, err
}

// storeWriter stores Count changes, one at a time, beside somebody who lists everything
// again and again.
func (t Task) storeWriter(ctx context.Context) (Result, error) {
	store, objects, err := t.writable(ctx)
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	states := [][]*local.Small{later(objects, 1), later(objects, 2)}
	order := shuffled(t.Items)
	delays := make([]time.Duration, 0, t.Count)
	reader := &beside{}
	if t.Busy {
		reader.run(func(int) error {
			if n := store.List(); n != t.Items {
				return fmt.Errorf("%d objects, not %d", n, t.Items)
			}
			return nil
		})
	}
	result, err := t.timed(t.Count, func() error {
		for n := range t.Count {
			time.Sleep(writerPause)
			began := time.Now()
			if err := store.Update(states[n/t.Items%2][order[n%t.Items]]); err != nil {
				return err
			}
			delays = append(delays, time.Since(began))
		}
		return nil
	})
	if _, failed := reader.end(); failed != nil {
		return Result{}, failed
	}
	result.setDelays(delays)
	return result, err
}
