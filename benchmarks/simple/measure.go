package simple

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Result is a measured line. Times are medians of one call, or bytes of one object.
type Result struct {
	Name         string
	Unit         string
	Theirs, Ours float64
	// Ratio is the median of client-go's figures divided by ours: above 1 ours is better.
	Ratio float64
	// Goal is the least ratio, 0 if there is none.
	Goal float64
}

func (r Result) String() string {
	verdict := ""
	if r.Ratio < r.Goal {
		verdict = "missed"
	}
	return fmt.Sprintf("%-34s %10.1f %10.1f %-3s %6.2fx  goal %5.2fx %s",
		r.Name, r.Theirs, r.Ours, r.Unit, r.Ratio, r.Goal, verdict)
}

// round is the work of one side in one round.
type round struct {
	// prepare is not measured; it may be nil.
	prepare func()
	work    func() error
}

// measureTime makes both sides take turns, on one locked thread without garbage collections.
func measureTime(theirs, ours round, calls, rounds int) (result Result, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	sides := [2]round{theirs, ours}
	var times [2][]float64
	for n := range rounds {
		for turn := range sides {
			side := (n + turn) % len(sides)
			spent, err := timeOf(sides[side])
			if err != nil {
				return Result{}, err
			}
			times[side] = append(times[side], float64(spent)/float64(calls))
		}
	}
	var ratios []float64
	for n := range rounds {
		ratios = append(ratios, times[0][n]/times[1][n])
	}
	return Result{Theirs: median(times[0]), Ours: median(times[1]), Ratio: median(ratios)}, nil
}

// collectEach is the heap's growth after which a round begins with a collection.
const collectEach = 256 << 20

// timeOf returns the CPU time of a round.
func timeOf(r round) (time.Duration, error) {
	if r.prepare != nil {
		r.prepare()
	}
	collect()
	before, err := threadTime()
	if err != nil {
		return 0, err
	}
	if err := r.work(); err != nil {
		return 0, err
	}
	after, err := threadTime()
	return after - before, err
}

// liveAfter is the heap after the last collection.
var liveAfter uint64

// collect runs a garbage collection if the heap has grown enough.
func collect() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc < liveAfter+collectEach {
		return
	}
	runtime.GC()
	runtime.ReadMemStats(&m)
	liveAfter = m.HeapAlloc
}

// threadTime returns the CPU time of the thread.
func threadTime() (time.Duration, error) {
	var spec unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spec); err != nil {
		return 0, fmt.Errorf("CPU time of the thread: %w", err)
	}
	return time.Duration(spec.Nano()), nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// liveHeap returns the live heap.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
