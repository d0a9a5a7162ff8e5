package client

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/sides"
)

// kinds are the informers that are compared.
var kinds = map[string]Task{
	"client-go":    {Side: sides.ClientGo, Form: sides.SharedInformer},
	"ours, shared": {Side: sides.Ours, Form: sides.SharedInformer},
	"ours, typed":  {Side: sides.Ours, Form: sides.TypedInformer},
}

// everyKind does a work with each kind of informer, in this process.
func everyKind(t *testing.T, work Task, check func(t *testing.T, task Task, result Result)) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			task := work
			task.Side = kind.Side
			task.Form = kind.Form
			result, err := task.run(t.Context(), "")
			require.NoError(t, err)
			check(t, task, result)
		})
	}
}

// Each in a process of its own: what other tests have left does not count.
func TestAnIdleInformerHasGoroutinesAHeapAndStacks(t *testing.T) {
	for name, task := range kinds {
		t.Run(name, func(t *testing.T) {
			task.Work = Idle
			task.Items = 200
			task.GCPercent = 100
			task.Timeout = time.Minute
			result, err := Run(t.Context(), task)
			require.NoError(t, err)
			require.GreaterOrEqual(t, result.Goroutines, int64(200*2), "the caller of Run, and the handler's")
			require.Zero(t, result.Goroutines%200, "nothing but informers has goroutines")
			require.GreaterOrEqual(t, result.Stack, result.Goroutines*2048, "Go has no smaller stacks")
			require.Less(t, result.Stack, result.Goroutines*16<<10)
			require.Greater(t, result.Heap, int64(200*1<<10))
			require.Less(t, result.Heap, int64(200*64<<10))

			task.Work = IdleCPU
			task.Items = 50
			result, err = Run(t.Context(), task)
			require.NoError(t, err)
			require.InDelta(t, idleFor.Seconds(), result.Seconds, 0)
			require.Positive(t, result.CPU)
			require.Less(t, result.CPU, result.Seconds, "informers that have nothing to do")
		})
	}
}

func TestAStalledHandlerHoldsOnToWhatItsDeliveryKeeps(t *testing.T) {
	const updates = 5000
	for _, delivery := range []sides.Delivery{sides.Ordered, sides.Coalesced} {
		task := Task{Work: Stalled, Items: updates, Delivery: delivery}
		everyKind(t, task, func(t *testing.T, task Task, result Result) {
			switch {
			case task.Side == sides.ClientGo:
				require.Greater(t, result.Heap, int64(updates*1600), "every state")
			case task.Delivery == sides.Coalesced:
				require.Less(t, result.Heap, int64(updates*200), "one state")
			default:
				require.Greater(t, result.Heap, int64(1000*1600), "a thousand states are not merged")
				require.Less(t, result.Heap, int64(2000*1600))
			}
			require.Less(t, result.Drained, int64(1<<20))
		})
	}
}

func TestAFirstListIsCountedByObject(t *testing.T) {
	everyKind(t, Task{Work: FirstList, Items: 3000}, func(t *testing.T, _ Task, result Result) {
		require.Equal(t, 3000, result.Items)
		require.GreaterOrEqual(t, result.Mallocs, uint64(3000), "each is copied out of its page")
		require.Less(t, result.Mallocs, uint64(20*3000))
		require.Positive(t, result.CPU)
	})
}

func TestOnlyTheirsNotifiesOfObjectsARelistFoundUnchanged(t *testing.T) {
	everyKind(t, Task{Work: ChangedList, Items: 1200}, func(t *testing.T, task Task, result Result) {
		want := int64(0)
		if task.Side == sides.ClientGo {
			want = 1200 - 12
		}
		require.Equal(t, want, result.Calls)
		require.Positive(t, result.Steady)
	})
}

func TestUpdatesAreCountedWithoutTheirSource(t *testing.T) {
	task := Task{Work: Updates, Items: 500, Count: 4000, Handlers: 3}
	everyKind(t, task, func(t *testing.T, _ Task, result Result) {
		require.Equal(t, 4000, result.Items)
		require.Positive(t, result.Source.CPU)
		require.Less(t, result.Source.Mallocs, uint64(400), "what is sent was made before")
		require.Positive(t, result.Calls)
		require.LessOrEqual(t, result.Calls, int64(3*4000))
	})
}

func TestEventsAreTimedToTheirHandlers(t *testing.T) {
	for _, burst := range []int{1, 20} {
		t.Run(fmt.Sprint(burst), func(t *testing.T) {
			task := Task{Work: Delays, Items: 500, Count: 20, Handlers: 2, Burst: burst}
			everyKind(t, task, func(t *testing.T, _ Task, result Result) {
				require.Equal(t, 20*burst, result.Items)
				require.Positive(t, result.Median)
				require.LessOrEqual(t, result.Median, result.P99)
			})
		})
	}
}

func TestEventsAreSentAtTheirPace(t *testing.T) {
	task := Task{Work: Paced, Items: 500, Count: 20, Handlers: 2}
	everyKind(t, task, func(t *testing.T, _ Task, result Result) {
		require.GreaterOrEqual(t, result.Seconds, (20*paceEvery).Seconds()*0.9)
		require.Positive(t, result.CPU)
	})
}

func TestPendingEventsTakeHeapAndTheirObjectsDoNotCount(t *testing.T) {
	task := Task{Work: Pending, Items: 4000, Count: 6000, Handlers: 3}
	everyKind(t, task, func(t *testing.T, _ Task, result Result) {
		require.Greater(t, result.Heap, int64(6000*8), "a pointer for each")
		require.Less(t, result.Heap, int64(6000*800), "but no object")
	})
}

func TestAControllerIsMeasuredLikeAnInformer(t *testing.T) {
	for _, side := range []sides.Side{sides.ClientGo, sides.Ours} {
		t.Run(string(side), func(t *testing.T) {
			task := Task{Side: side, Form: sides.StoreAndHandler, Items: 500, Handlers: 1}
			task.Work = Updates
			task.Count = 4000
			result, err := task.run(t.Context(), "")
			require.NoError(t, err)
			require.Positive(t, result.Calls)

			task.Work = Delays
			task.Count = 20
			task.Burst = 1
			result, err = task.run(t.Context(), "")
			require.NoError(t, err)
			require.Positive(t, result.Median)

			task.Handlers = 2
			_, err = task.run(t.Context(), "")
			require.ErrorIs(t, err, sides.ErrOneHandler)
		})
	}
}

// Fails if a work whose time is up waits on, or says that it got what it waited for.
func TestAWaitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := newFleet(ctx)
	defer f.stop()
	cancel()

	looks := 0
	never := func() bool {
		looks++
		require.Equal(t, 1, looks, "it looks again, though the context has ended")
		return false
	}
	err := f.until(never, "the second list")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "the second list did not come")

	err = f.wait(nil, "the last change")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "the last change did not come")
}

func TestDelaysAreSorted(t *testing.T) {
	var delays []time.Duration
	for n := range 101 {
		delays = append(delays, time.Duration(100-n)*time.Second)
	}
	var result Result
	result.setDelays(delays)
	require.Equal(t, [2]float64{50, 99}, [2]float64{result.Median, result.P99})
}
