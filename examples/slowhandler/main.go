// Slowhandler shows what a handler that hangs costs. It updates one object of about
// 1 KiB over and over while an informer's handler stands still in its first call, and
// prints how much larger the heap has become and what the status says of the handler,
// once for each way of delivery:
//
//	go run ./examples/slowhandler
//
// Ordered, the default, gives up telling every single change when too many wait.
// Coalesced never tries to. OrderedUnbounded keeps all of them, and is therefore given
// fewer here. What is printed is measured, in this process, after a garbage collection.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

func main() {
	if err := run(context.Background(), os.Stdout, 500_000, 20_000); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints a line for each delivery: updates is how many those get that are bounded,
// unbounded how many the other one gets.
func run(ctx context.Context, out io.Writer, updates, unbounded int) error {
	for _, trial := range []trial{
		{cache.Ordered, updates},
		{cache.Coalesced, updates},
		{cache.OrderedUnbounded, unbounded},
	} {
		result, err := trial.run(ctx)
		if err != nil {
			return fmt.Errorf("%v: %w", trial.delivery, err)
		}
		fmt.Fprintln(out, result)
	}
	return nil
}

// trial is one informer with one handler that hangs.
type trial struct {
	delivery cache.Delivery
	updates  int
}

// result is what a trial came to.
type result struct {
	trial
	stalled cache.HandlerStatus // after the last update, while the handler still hangs
	grown   int64               // bytes of heap, since before the first update
	calls   int                 // of the handler, until it had heard of the last update
}

func (r result) String() string {
	return fmt.Sprintf(`%v: %d updates, heap %+.2f MiB
  while it hangs: backlog %d, merging %t, the oldest waits for %v
  once it goes on: %d calls until it has the last state`,
		r.delivery, r.updates, float64(r.grown)/(1<<20),
		r.stalled.Backlog, r.stalled.Merging, r.stalled.OldestAge.Round(time.Second),
		r.calls)
}

func (t trial) run(ctx context.Context) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	counter := newCounter(ctx)
	informer := cache.NewInformerFor(counter.source(), cache.InformerConfig[*metav1.PartialObjectMetadata]{Name: "slow"})

	hanging := newHanging()
	_, err := informer.AddHandler(hanging, cache.HandlerOptions{Name: "hanging", Delivery: t.delivery})
	if err != nil {
		return result{}, err
	}
	ended := make(chan error, 1)
	go func() { ended <- informer.Run(ctx) }()

	outcome, err := t.measure(ctx, counter, informer, hanging)
	cancel()
	hanging.goOn() // Run waits for a call that is under way
	if ran := <-ended; err == nil {
		err = ran
	}
	return outcome, err
}

func (t trial) measure(ctx context.Context, counter *counter, informer *cache.Informer[*metav1.PartialObjectMetadata], hanging *hanging) (result, error) {
	if err := wait(ctx, hanging.entered); err != nil {
		return result{}, err
	}
	before := heap()
	if err := counter.countTo(t.updates); err != nil {
		return result{}, err
	}
	for informer.LastSyncResourceVersion() != counter.version() {
		if err := pause(ctx, time.Millisecond); err != nil {
			return result{}, err
		}
	}
	if err := pause(ctx, time.Second); err != nil { // so that there is an age to be seen
		return result{}, err
	}
	outcome := result{trial: t, grown: heap() - before, stalled: informer.Status().Handlers[0]}

	hanging.awaited = counter.version()
	hanging.goOn()
	if err := wait(ctx, hanging.caughtUp); err != nil {
		return outcome, err
	}
	outcome.calls = hanging.calls
	return outcome, nil
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// heap is how many bytes live objects have. The second collection takes what the
// first one only found to be free.
func heap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
