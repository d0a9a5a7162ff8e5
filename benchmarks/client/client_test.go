package client

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// TestMain lets the test's program do tasks, as the real one does.
func TestMain(m *testing.M) {
	PlayRole()
	os.Exit(m.Run())
}

func podTask(side sides.Side, work Work, format sides.Format) Task {
	return Task{Side: side, Work: work, Target: sides.Target{Format: format}, Strategy: sides.Pages, Items: 1200}
}

func TestReadingPodsCountsWhatComesAndWhatItCosts(t *testing.T) {
	for _, side := range []sides.Side{sides.ClientGo, sides.Ours} {
		for work, format := range map[Work]sides.Format{
			List: sides.ProtobufTyped, Events: sides.JSONTyped, Stream: sides.JSONTyped,
		} {
			t.Run(string(side)+" "+string(work), func(t *testing.T) {
				result, err := Run(t.Context(), podTask(side, work, format))
				require.NoError(t, err)
				require.Positive(t, result["CPU us/pod"])
				require.Greater(t, result["allocations/pod"], 100.0)
				// A pod of 17 KiB is made of each, once: the warming up does not count.
				require.Greater(t, result["kB allocated/pod"], 17.0)
				require.Less(t, result["kB allocated/pod"], 60.0)
			})
		}
	}
}

func TestASyncHasAPeakOverItsRest(t *testing.T) {
	for _, side := range []sides.Side{sides.ClientGo, sides.Ours} {
		for _, isExact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, exact %t", side, isExact), func(t *testing.T) {
				task := podTask(side, Sync, sides.ProtobufTyped)
				task.GCPercent = 10
				task.StopTheWorld = isExact
				result, err := Run(t.Context(), task)
				require.NoError(t, err)
				require.Greater(t, result["peak / steady"], 0.75)
			})
		}
	}
}

func TestATaskThatCannotBeDoneIsAnError(t *testing.T) {
	_, err := Run(t.Context(), podTask("nobody", List, sides.JSONTyped))
	require.ErrorContains(t, err, `"nobody" is neither`)
	_, err = Run(t.Context(), Task{Side: sides.Ours, Work: "nothing"})
	require.ErrorContains(t, err, `"nothing" is no work`)

	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	_, err = Run(ctx, podTask(sides.Ours, List, sides.JSONTyped))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAPeakBeforeTheEndIsSeen(t *testing.T) {
	const size = 64 << 20
	ticks := make(chan time.Time)
	peak := peakAt(ticks, func() {
		spike := make([]byte, size)
		runtime.GC()
		runtime.KeepAlive(spike)
		ticks <- time.Time{}
		ticks <- time.Time{} // after the look at the first
		runtime.GC()
	})
	require.Greater(t, peak, uint64(size))
	require.Less(t, liveHeap(), float64(size))
}

// everyKind does a work with each kind of informer, in this process or in one of its own.
func everyKind(
	t *testing.T, task Task, run func(Task, context.Context) (Result, error),
	check func(t *testing.T, task Task, result Result),
) {
	for _, side := range []sides.Side{sides.ClientGo, sides.Ours} {
		for _, form := range []sides.Form{sides.SharedInformer, sides.TypedInformer, sides.StoreAndHandler} {
			if form == sides.StoreAndHandler && task.Handlers > 1 {
				continue
			}
			task.Side = side
			task.Form = form
			t.Run(fmt.Sprintf("%s, %s, %d", side, form, task.Delivery), func(t *testing.T) {
				result, err := run(task, t.Context())
				require.NoError(t, err)
				check(t, task, result)
			})
		}
	}
}

// inAProcess does a task in a process of its own: what other tests have left does not count.
func inAProcess(task Task, ctx context.Context) (Result, error) { return Run(ctx, task) }

func TestIdleInformersHaveGoroutinesAndMemoryAndTimers(t *testing.T) {
	everyKind(t, Task{Work: Idle, Items: 200}, inAProcess, func(t *testing.T, _ Task, result Result) {
		goroutines := result["goroutines/informer"]
		require.GreaterOrEqual(t, goroutines, 2.0, "the caller of Run, and the handler's")
		require.InDelta(t, float64(int(goroutines)), goroutines, 0, "nothing but informers has goroutines")
		memory := result["KiB heap + stack/informer"]
		require.Greater(t, memory, 2*goroutines+1, "Go has no stacks below 2 KiB")
		require.Less(t, memory, 16*goroutines+64)
	})
	everyKind(t, Task{Work: IdleCPU, Items: 50}, inAProcess, func(t *testing.T, _ Task, result Result) {
		require.Positive(t, result["CPU us/s"])
		require.Less(t, result["CPU us/s"], 1e6, "informers that have nothing to do")
	})
}

func TestAStalledHandlerHoldsOnToWhatItsDeliveryKeeps(t *testing.T) {
	const updates = 5000
	const state = 1600.0 / mebi
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced} {
		task := Task{Work: Stalled, Items: updates, Delivery: delivery, Handlers: 2} // no controller
		everyKind(t, task, Task.run, func(t *testing.T, task Task, result Result) {
			most := result["MiB more, at most"]
			switch {
			case task.Side == sides.ClientGo:
				require.Greater(t, most, updates*state, "every state")
			case task.Delivery == cache.Coalesced:
				require.Less(t, most, updates*state/8, "one state")
			default:
				require.Greater(t, most, 1000*state, "a thousand states are not merged")
				require.Less(t, most, 2000*state)
			}
			require.Less(t, result["MiB more, drained"], 1.0)
		})
	}
}

func TestAFirstListIsCountedByObject(t *testing.T) {
	task := Task{Work: FirstList, Items: 3000}
	everyKind(t, task, Task.run, func(t *testing.T, _ Task, result Result) {
		require.GreaterOrEqual(t, result["allocations/object"], 1.0, "each is copied out of its page")
		require.Less(t, result["allocations/object"], 20.0)
		require.Positive(t, result["CPU us/object"])
	})
}

func TestOnlyTheirsNotifiesOfObjectsThatARelistFoundUnchanged(t *testing.T) {
	task := Task{Work: ChangedList, Items: 1200}
	everyKind(t, task, Task.run, func(t *testing.T, task Task, result Result) {
		want := 0.0
		if task.Side == sides.ClientGo {
			want = 1200 - 12
		}
		require.InDelta(t, want, result["calls for unchanged objects"], 0)
		require.Contains(t, result, "peak / steady")
	})
}

func TestUpdatesAreCountedWithoutTheirSource(t *testing.T) {
	for _, handlers := range []int{1, 3} {
		task := Task{Work: Updates, Items: 500, Count: 4000, Handlers: handlers}
		everyKind(t, task, Task.run, func(t *testing.T, _ Task, result Result) {
			require.Positive(t, result["wall us/event"])
			require.Less(t, result["allocations/event"], 20.0)
			require.Positive(t, result["handler calls/event"])
			require.LessOrEqual(t, result["handler calls/event"], float64(handlers))
		})
	}
	source := cost{time: 1, cpu: 2, bytes: 3, mallocs: 4}
	require.Equal(t, cost{time: 9, cpu: 5, bytes: 4, mallocs: 0}, cost{time: 9, cpu: 7, bytes: 7, mallocs: 3}.minus(source))
}

func TestEventsAreTimedToTheirHandlers(t *testing.T) {
	for _, task := range []Task{{Burst: 1, Handlers: 1}, {Burst: 20, Handlers: 2}} {
		task.Work = Delays
		task.Items = 500
		task.Count = 20
		everyKind(t, task, Task.run, func(t *testing.T, _ Task, result Result) {
			require.Positive(t, result["us to a handler, p50"])
			require.LessOrEqual(t, result["us to a handler, p50"], result["us to a handler, p99"])
		})
	}
	var delays []time.Duration
	for n := range 101 {
		delays = append(delays, time.Duration(100-n)*time.Microsecond)
	}
	require.Equal(t, Result{"us to a handler, p50": 50, "us to a handler, p99": 99}, delayFigures(delays))
}

func TestEventsAreSentAtTheirPace(t *testing.T) {
	task := Task{Work: Paced, Items: 500, Count: 20, Handlers: 2}
	everyKind(t, task, Task.run, func(t *testing.T, _ Task, result Result) {
		require.GreaterOrEqual(t, result["wall us/event"], microseconds(paceEvery)*0.9)
		require.Positive(t, result["CPU us/event"])
	})
}

func TestPendingEventsTakeHeapAndTheirObjectsDoNotCount(t *testing.T) {
	task := Task{Work: Pending, Items: 4000, Count: 6000, Handlers: 3}
	everyKind(t, task, Task.run, func(t *testing.T, _ Task, result Result) {
		require.Greater(t, result["B/pending event"], 8.0, "a pointer for each")
		require.Less(t, result["B/pending event"], 800.0, "but no object")
	})
}

// Fails if a work whose time is up waits on, or says that it got what it waited for.
func TestAWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	looks := 0
	never := func() bool {
		looks++
		require.Equal(t, 1, looks, "it looks again, though the context has ended")
		return false
	}
	for _, wait := range []func(f *fleet){
		func(f *fleet) { f.waitUntil("the change", never) },
		func(f *fleet) { f.wait("the change", nil) },
	} {
		f := newFleet(ctx, Task{})
		wait(f)
		f.wait("another", nil)
		f.stop()
		require.ErrorIs(t, f.err, context.Canceled)
		require.ErrorContains(t, f.err, "the change did not come")
	}
}
