package main

import (
	"fmt"
	"slices"

	"github.com/watchmirror/cache/benchmarks/client"
)

// figure is one number of a result, and what it should be.
type figure struct {
	name string
	// of reads the number.
	of func(client.Result) float64
	// format is how a number is printed.
	format string
	// times is how many times less than client-go's the number of ours is to be, most
	// how large it may be at most; one of them is 0, or both where there is no goal.
	times, most float64
	// noisy is a number that depends on what else the machine does. Of such a one the
	// best pass counts, for each side; of the others the worst.
	noisy bool
}

// What is missed by more fails the run. Times are compared loosely, because a machine
// that others use makes them differ by as much.
const (
	stableTolerance = 0.10
	noisyTolerance  = 0.20
)

// peakOverSteady is how much more memory the first list takes than what it leaves. It is
// exact if collections stop the world; with the collector that programs have it depends
// on how much CPU that gets.
func peakOverSteady(most float64, exact bool) figure {
	return figure{name: "peak / steady", format: "%.2f", most: most, noisy: !exact,
		of: func(r client.Result) float64 { return float64(r.Peak) / float64(r.Steady) }}
}

func cpuPerItem(times float64) figure {
	return figure{name: "CPU us/pod", format: "%.1f", times: times, noisy: true,
		of: func(r client.Result) float64 { return r.CPU / float64(r.Items) * 1e6 }}
}

func bytesPerItem(times float64) figure {
	return figure{name: "kB allocated/pod", format: "%.1f", times: times,
		of: func(r client.Result) float64 { return float64(r.Bytes) / float64(r.Items) / 1e3 }}
}

// goal is the figure's goal as text.
func (f figure) goal() string {
	switch {
	case f.most > 0:
		return fmt.Sprintf("<= %.2f", f.most)
	case f.times > 0:
		return fmt.Sprintf("%.1fx", f.times)
	}
	return "-"
}

// sample is a figure of all passes of one side.
type sample struct{ best, median, worst float64 }

func (f figure) sample(results []client.Result) sample {
	var values []float64
	for _, result := range results {
		values = append(values, f.of(result))
	}
	slices.Sort(values)
	last := len(values) - 1
	return sample{values[0], (values[last/2] + values[(last+1)/2]) / 2, values[last]}
}

// counted is the pass that counts.
func (f figure) counted(s sample) float64 {
	if f.noisy {
		return s.best
	}
	return s.worst
}

// spread is how far the passes lie apart, as a part of the best.
func (s sample) spread() float64 { return s.worst/s.best - 1 }

// verdict says whether the goal is reached, and whether the run fails if not.
func (f figure) verdict(theirs, ours sample) (text string, failed bool) {
	var missing float64 // as a part of the goal
	switch {
	case f.most > 0:
		missing = f.counted(ours)/f.most - 1
	case f.times > 0:
		missing = 1 - f.counted(theirs)/f.counted(ours)/f.times
	default:
		return "-", false
	}
	if missing <= 0 {
		return "PASS", false
	}
	tolerance := stableTolerance
	if f.noisy {
		tolerance = noisyTolerance
	}
	if missing > tolerance {
		return fmt.Sprintf("FAIL: short by %.0f %%", 100*missing), true
	}
	return fmt.Sprintf("short by %.1f %%", 100*missing), false
}
