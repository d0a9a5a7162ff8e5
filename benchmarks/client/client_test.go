package client

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/sides"
)

// TestMain lets the test's program play the other roles, as the real one does.
func TestMain(m *testing.M) {
	PlayRole()
	os.Exit(m.Run())
}

func task(side sides.Side, work Work) Task {
	return Task{Side: side, Work: work, Encoding: sides.Protobuf, Objects: sides.Typed, Strategy: sides.Pages,
		Items: 1200, GCPercent: 100, Timeout: 5 * time.Minute}
}

func TestEachTaskCountsWhatComesAndWhatItCosts(t *testing.T) {
	for _, side := range []sides.Side{sides.ClientGo, sides.Ours} {
		for _, work := range []Work{List, Events, Stream} {
			t.Run(string(side)+" "+string(work), func(t *testing.T) {
				task := task(side, work)
				if work != List {
					task.Encoding = sides.JSON // as all events are
				}
				result, err := Run(t.Context(), task)
				require.NoError(t, err)
				require.Equal(t, 1200, result.Items)
				require.Positive(t, result.CPU)
				// A pod of 17 KiB is made of each, and of each once: the warming up
				// does not count.
				require.Greater(t, result.Bytes, uint64(1200*17_000))
				require.Less(t, result.Bytes, uint64(1200*60_000))
			})
		}
	}
}

func TestASyncHasAPeakAndARest(t *testing.T) {
	for _, side := range []sides.Side{sides.ClientGo, sides.Ours} {
		for _, exact := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, exact %t", side, exact), func(t *testing.T) {
				task := task(side, Sync)
				task.GCPercent, task.StopTheWorld = 10, exact
				result, err := Run(t.Context(), task)
				require.NoError(t, err)
				require.Equal(t, 1200, result.Items)
				require.Greater(t, result.Steady, uint64(1200*2_000))
				require.Less(t, result.Steady, uint64(1200*10_000))
				require.Greater(t, result.Peak, result.Steady*3/4)
			})
		}
	}
}

func TestATaskThatCannotBeDoneIsAnError(t *testing.T) {
	unknown := task("nobody", List)
	_, err := Run(t.Context(), unknown)
	require.ErrorContains(t, err, "nobody")

	late := task(sides.Ours, List)
	late.Timeout = time.Nanosecond
	_, err = Run(t.Context(), late)
	require.Error(t, err)
}

func TestAPeakBeforeTheEndIsSeen(t *testing.T) {
	const size = 64 << 20
	var peak heapPeak
	ticks := make(chan time.Time)
	peak.begin(ticks)
	spike := make([]byte, size)
	runtime.GC()
	runtime.KeepAlive(spike)
	ticks <- time.Time{}
	ticks <- time.Time{} // after the look at the first
	runtime.GC()
	peak.end()
	require.Greater(t, peak.bytes(), uint64(size))
	require.Less(t, liveHeap(), uint64(size))
}

func TestUnobservedCollectionsNearThePeakAreCounted(t *testing.T) {
	peak := heapPeak{looks: []look{{100, 0}, {10, 1}, {20, 5}, {90, 6}, {100, 9}, {30, 12}}}
	require.EqualValues(t, 100, peak.bytes())
	require.EqualValues(t, 2, peak.missed(), "those between 6 and 9")
}
