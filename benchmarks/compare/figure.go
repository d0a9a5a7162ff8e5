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
	goal   goal
	// noisy is a number that depends on what else the machine does. Of such a one the
	// best pass counts, for each side; of the others the worst.
	noisy bool
	// more says that larger is better.
	more bool
	// slack is how much more than what is recorded, or the goal, means nothing, beside the
	// tolerance: a tenth of almost nothing is less than what the runtime does beside. A
	// figure of which more is better has none.
	slack float64
	// loose is a number that is neither noisy nor judged.
	loose bool
}

// recorded says whether the figure is compared with what was measured before.
func (f figure) recorded() bool { return !f.noisy && !f.loose }

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

// sample is a figure of all passes of one side, none if nothing was measured.
type sample struct{ best, median, worst float64 }

// same is the sample of one number.
func same(number float64) sample { return sample{number, number, number} }

// samples are a figure of both sides.
type samples struct {
	theirs, ours sample
	// ratios are those of sides that took turns: the quartiles and the median. They are 0
	// where each side had a process of its own.
	ratios sample
}

func (s samples) byTurns() bool { return s.ratios != (sample{}) }

// spread is how far ratios or passes lie apart.
func (s samples) spread() string {
	if !s.byTurns() {
		return s.theirs.spread() + " / " + s.ours.spread() + " %"
	}
	return fmt.Sprintf("%.2f-%.2f", s.ratios.worst, s.ratios.best)
}

func (f figure) sample(results []client.Result) sample {
	var values []float64
	for _, result := range results {
		values = append(values, f.of(result))
	}
	if len(values) == 0 {
		return sample{}
	}
	slices.Sort(values)
	if f.more {
		slices.Reverse(values)
	}
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
	case s.best <= 0 || s.worst <= 0:
		return "-"
	}
	return fmt.Sprintf("%.0f", 100*(max(s.best, s.worst)/min(s.best, s.worst)-1))
}
