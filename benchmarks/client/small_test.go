package client

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/sides"
)

// smallKinds are the sides of the works on small objects. Works without forms do with them.
var smallKinds = []struct {
	name string
	side sides.Side
	form sides.Form
}{
	{"client-go", sides.ClientGo, sides.SharedInformer},
	{"ours, shared", sides.Ours, sides.SharedInformer},
	{"ours, typed", sides.Ours, sides.TypedInformer},
}

// controllers are both sides' without a queue of the program's.
var controllers = map[string]sides.Side{"client-go": sides.ClientGo, "ours": sides.Ours}

// everySmallKind does a work with all of them, in this process.
func everySmallKind(t *testing.T, task Task, check func(t *testing.T, task Task, result Result)) {
	for _, kind := range smallKinds {
		t.Run(kind.name, func(t *testing.T) {
			task.Side, task.Form = kind.side, kind.form
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			result, err := task.run(ctx, "")
			require.NoError(t, err)
			check(t, task, result)
		})
	}
}

func TestAFirstListIsCountedByObject(t *testing.T) {
	everySmallKind(t, Task{Work: FirstList, Items: 3000}, func(t *testing.T, task Task, result Result) {
		require.Equal(t, 3000, result.Items)
		require.GreaterOrEqual(t, result.Mallocs, uint64(3000), "each is copied out of its page")
		require.Less(t, result.Mallocs, uint64(20*3000))
		require.Positive(t, result.CPU)
	})
}

func TestOnlyTheirsNotifiesOfObjectsARelistFoundUnchanged(t *testing.T) {
	everySmallKind(t, Task{Work: ChangedList, Items: 1200}, func(t *testing.T, task Task, result Result) {
		want := int64(0)
		if task.Side == sides.ClientGo {
			want = 1200 - 12
		}
		require.Equal(t, want, result.Calls)
		require.Positive(t, result.Steady)
	})
}

func TestUpdatesAreCountedWithoutTheirSource(t *testing.T) {
	everySmallKind(t, Task{Work: Updates, Items: 500, Count: 4000, Handlers: 3}, func(t *testing.T, task Task, result Result) {
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
			everySmallKind(t, Task{Work: Delays, Items: 500, Count: 20, Handlers: 2, Burst: burst}, func(t *testing.T, task Task, result Result) {
				require.Equal(t, 20*burst, result.Items)
				require.Positive(t, result.Median)
				require.LessOrEqual(t, result.Median, result.P99)
				require.LessOrEqual(t, result.P99, result.Longest)
			})
		})
	}
}

func TestEventsAreSentAtTheirPace(t *testing.T) {
	everySmallKind(t, Task{Work: Paced, Items: 500, Count: 20, Handlers: 2}, func(t *testing.T, task Task, result Result) {
		require.Equal(t, 20, result.Items)
		require.GreaterOrEqual(t, result.Seconds, (20*paceEvery).Seconds()*0.9)
		require.Positive(t, result.CPU)
	})
}

func TestAControllerIsMeasuredLikeAnInformer(t *testing.T) {
	for name, side := range controllers {
		t.Run(name, func(t *testing.T) {
			task := Task{Work: Updates, Side: side, Form: sides.StoreAndHandler, Items: 500, Count: 4000, Handlers: 1}
			result, err := task.run(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, 4000, result.Items)
			require.Positive(t, result.Calls)
			task.Work, task.Count, task.Burst = Delays, 20, 1
			result, err = task.run(t.Context(), "")
			require.NoError(t, err)
			require.Positive(t, result.Median)
			task.Handlers = 2
			_, err = task.run(t.Context(), "")
			require.ErrorContains(t, err, "one handler")
		})
	}
}

func TestPendingEventsTakeHeapAndTheirObjectsDoNotCount(t *testing.T) {
	for _, kind := range smallKinds {
		t.Run(kind.name, func(t *testing.T) {
			task := Task{Work: Pending, Side: kind.side, Form: kind.form, Items: 4000, Count: 6000, Handlers: 3}
			result, err := task.run(t.Context(), "")
			require.NoError(t, err)
			require.Equal(t, 6000, result.Items)
			require.Greater(t, result.Heap, int64(6000*8), "a pointer for each")
			require.Less(t, result.Heap, int64(6000*800), "but no object")
		})
	}
}

func TestDelaysAreSorted(t *testing.T) {
	var delays []time.Duration
	for n := range 101 {
		delays = append(delays, time.Duration(100-n)*time.Second)
	}
	var result Result
	result.setDelays(delays)
	require.Equal(t, [3]float64{50, 99, 100}, [3]float64{result.Median, result.P99, result.Longest})
	result.setDelays(nil)
	require.InDelta(t, 50, result.Median, 0, "nothing changes nothing")
}
