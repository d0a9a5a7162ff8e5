package main

import (
	"fmt"
	"math"
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
	goal   goal
	// noisy is a number that depends on what else the machine does. Of such a one the
	// best pass counts, for each side; of the others the worst.
	noisy bool
}

// goal is what the number of ours should be. The zero value is none.
type goal struct {
	kind   goalKind
	number float64
}

type goalKind int

const (
	noGoal goalKind = iota
	// atMost is a number that must not be larger.
	atMost
	// timesLess is a number that must be so many times less than client-go's.
	timesLess
)

// less is the goal of so many times less, none for 0.
func less(times float64) goal {
	if times == none {
		return goal{}
	}
	return goal{timesLess, times}
}

// String is the goal in the table.
func (g goal) String() string {
	switch g.kind {
	case atMost:
		if g.number == math.Trunc(g.number) {
			return fmt.Sprintf("<= %.0f", g.number)
		}
		return fmt.Sprintf("<= %.2f", g.number)
	case timesLess:
		return fmt.Sprintf("%.1fx", g.number)
	}
	return "-"
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
	return figure{name: "peak / steady", format: "%.2f", goal: goal{atMost, most}, noisy: !exact,
		of: func(r client.Result) float64 { return float64(r.Peak) / float64(r.Steady) }}
}

func cpuPerItem(times float64) figure {
	return figure{name: "CPU us/pod", format: "%.1f", goal: less(times), noisy: true,
		of: func(r client.Result) float64 { return r.CPU / float64(r.Items) * 1e6 }}
}

func bytesPerItem(times float64) figure {
	return figure{name: "kB allocated/pod", format: "%.1f", goal: less(times),
		of: func(r client.Result) float64 { return float64(r.Bytes) / float64(r.Items) / 1e3 }}
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

// spread is how far the passes lie apart, in percent of the best. If the best is nothing,
// and the worst is not, there is no saying.
func (s sample) spread() string {
	switch {
	case s.worst == s.best: // both may be 0
		return "0"
	case s.best == 0:
		return "-"
	}
	return fmt.Sprintf("%.0f", 100*(s.worst/s.best-1))
}

// part is a number as a part of what it may be at most. Where that is nothing, any number
// is infinitely more than it.
func part(number, most float64) float64 {
	if number == most {
		return 1
	}
	return number / most
}

// verdict says whether the goal is reached, and whether the run fails if not.
func (f figure) verdict(theirs, ours sample) (text string, failed bool) {
	var missing float64 // as a part of the goal
	switch f.goal.kind {
	case atMost:
		missing = part(f.counted(ours), f.goal.number) - 1
	case timesLess:
		missing = 1 - f.counted(theirs)/f.counted(ours)/f.goal.number
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
	if math.IsInf(missing, 1) {
		return "FAIL", true
	}
	if missing > tolerance {
		return fmt.Sprintf("FAIL: short by %.0f %%", 100*missing), true
	}
	return fmt.Sprintf("short by %.1f %%", 100*missing), false
}
