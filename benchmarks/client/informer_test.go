package client

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/sides"
)

// kinds are the informers that are compared.
var kinds = map[string]Task{
	"client-go":      {Side: sides.ClientGo, Form: sides.SharedInformer},
	"ours, shared":   {Side: sides.Ours, Form: sides.SharedInformer},
	"ours, typed":    {Side: sides.Ours, Form: sides.TypedInformer},
	"ours, coalesce": {Side: sides.Ours, Form: sides.TypedInformer, Delivery: sides.Coalesced},
}

// everyKind does a work with each kind of informer, in a process of its own.
func everyKind(t *testing.T, work Work, items int, check func(t *testing.T, task Task, result Result)) {
	for name, task := range kinds {
		t.Run(name, func(t *testing.T) {
			task.Work, task.Items, task.GCPercent, task.Timeout = work, items, 100, 5*time.Minute
			result, err := Run(t.Context(), task)
			require.NoError(t, err)
			require.Equal(t, items, result.Items)
			check(t, task, result)
		})
	}
}

func TestAnIdleInformerHasGoroutinesAHeapAndStacks(t *testing.T) {
	everyKind(t, Idle, 200, func(t *testing.T, _ Task, result Result) {
		require.GreaterOrEqual(t, result.Goroutines, int64(200*2), "the caller of Run, and the handler's")
		require.Zero(t, result.Goroutines%200, "nothing but informers has goroutines")
		require.GreaterOrEqual(t, result.Stack, result.Goroutines*2048, "Go has no smaller stacks")
		require.Less(t, result.Stack, result.Goroutines*16<<10)
		require.Greater(t, result.Heap, int64(200*1<<10))
		require.Less(t, result.Heap, int64(200*64<<10))
	})
}

func TestIdleInformersAreLookedAtInVirtualTime(t *testing.T) {
	everyKind(t, IdleCPU, 50, func(t *testing.T, _ Task, result Result) {
		require.InDelta(t, idleFor.Seconds(), result.Seconds, 0)
		require.Positive(t, result.CPU)
		require.Less(t, result.CPU, result.Seconds, "informers that have nothing to do")
	})
}

func TestAStalledHandlerHoldsOnToWhatItsDeliveryKeeps(t *testing.T) {
	const updates = 5000
	everyKind(t, Stalled, updates, func(t *testing.T, task Task, result Result) {
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

func TestARelistIsCountedInCallsForWhatHasNotChanged(t *testing.T) {
	everyKind(t, Relist, 500, func(t *testing.T, task Task, result Result) {
		want := int64(0)
		if task.Side == sides.ClientGo {
			want = 500
		}
		require.Equal(t, want, result.Calls)
	})
}

func TestAWorkWithoutServerNeedsNone(t *testing.T) {
	for _, work := range []Work{Sync, List, Events, Stream} {
		require.True(t, work.NeedsServer(), work)
	}
	for _, work := range []Work{Idle, Stalled, Relist} {
		require.False(t, work.NeedsServer(), work)
	}
}

func TestAnInformerThatCannotBeMadeIsAnError(t *testing.T) {
	for _, work := range []Work{Idle, Stalled, Relist} {
		for _, task := range []Task{
			{Side: "nobody", Form: sides.SharedInformer},
			{Side: sides.Ours, Form: "none"},
			{Side: sides.Ours, Form: sides.TypedInformer, Delivery: "by pigeon"},
		} {
			task.Work, task.Items = work, 10
			_, err := task.run(t.Context(), "")
			require.Error(t, err, "%+v", task)
		}
	}
}

func TestAnInformersWorkEndsWithItsContext(t *testing.T) {
	for _, work := range []Work{Idle, Stalled, Relist} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		task := kinds["ours, typed"]
		task.Work, task.Items = work, 10
		_, err := task.run(ctx, "")
		require.ErrorIs(t, err, context.Canceled, work)
	}
}

func TestTheHeapIsLookedAtWhereABacklogIsLargest(t *testing.T) {
	var looks []int
	task := Task{Items: 50_000}
	for n := 1; n <= task.Items; n++ {
		if task.looksAfter(n) {
			looks = append(looks, n)
		}
	}
	require.Equal(t, []int{1000, 5000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000, 40_000, 45_000, 50_000}, looks)
	require.True(t, Task{Items: 5}.looksAfter(5))
}
