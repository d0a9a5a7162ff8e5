package calls

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// round is the work of one side in one round.
type round struct {
	// prepare is not measured; it may be nil.
	prepare func() error
	work    func() error
}

// turns says how two sides are measured: calls is the number of calls of a round.
type turns struct{ rounds, calls int }

// measure makes both sides take turns, on one locked thread without garbage collections. Its
// figures are nanoseconds per call.
func (t turns) measure(theirs, ours round) (Result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	sides := [2]round{theirs, ours}
	var allocations [2]float64
	result, err := interleaved(t.rounds, func(side int) (float64, error) {
		spent, mallocs, err := sides[side].do()
		// The last round counts: by then everything has grown to its size.
		allocations[side] = float64(mallocs) / float64(t.calls)
		return float64(spent) / float64(t.calls), err
	})
	result.Allocations = allocations
	return result, err
}

// do returns the thread's CPU time and the allocations of a round.
func (r round) do() (spent time.Duration, mallocs uint64, err error) {
	if r.prepare != nil {
		if err := r.prepare(); err != nil {
			return 0, 0, err
		}
	}
	collect()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	mallocsBefore := memory.Mallocs
	before := cpuTime(unix.CLOCK_THREAD_CPUTIME_ID)
	err = r.work()
	spent = cpuTime(unix.CLOCK_THREAD_CPUTIME_ID) - before
	runtime.ReadMemStats(&memory)
	return spent, memory.Mallocs - mallocsBefore, err
}

// interleaved measures both sides in each of so many rounds. They begin every other round.
func interleaved(rounds int, measure func(side int) (float64, error)) (Result, error) {
	var figures [2][]float64
	for n := range rounds {
		for turn := range figures {
			side := (n + turn) % len(figures)
			figure, err := measure(side)
			if err != nil {
				return Result{}, err
			}
			figures[side] = append(figures[side], figure)
		}
	}
	return compared(figures[0], figures[1]), nil
}

// compared makes a result of figures of rounds.
func compared(theirs, ours []float64) Result {
	var ratios []float64
	for n := range theirs {
		ratios = append(ratios, theirs[n]/ours[n])
	}
	return Result{
		Theirs: quantile(theirs, 0.5),
		Ours:   quantile(ours, 0.5),
		Ratio:  quantile(ratios, 0.5),
		Low:    quantile(ratios, 0.25),
		High:   quantile(ratios, 0.75),
	}
}

// quantile returns the figure that a part of all are below.
func quantile[Figure cmp.Ordered](of []Figure, part float64) Figure {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[int(part*float64(len(sorted)-1))]
}

// collectEach is the heap's growth after which a round begins with a collection.
const collectEach = 256 << 20

// liveAfter is the heap after the last collection.
var liveAfter uint64

// collect runs a garbage collection if the heap has grown enough.
func collect() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc < liveAfter+collectEach {
		return
	}
	liveAfter = uint64(liveHeap())
}

// liveHeap returns the live heap.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// cpuTime reads a clock of the thread or the process.
func cpuTime(clock int32) time.Duration {
	var spec unix.Timespec
	if err := unix.ClockGettime(clock, &spec); err != nil {
		panic(fmt.Sprintf("the system has no CPU time: %v", err))
	}
	return time.Duration(spec.Nano())
}
