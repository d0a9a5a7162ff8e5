package main

import (
	"fmt"
	"math"
	"slices"
)

// figure is a number that is measured of both sides, of which less is better, and what it should
// be.
type figure struct {
	name string
	kind figureKind
	goal goal
	// slack is how much more than what is recorded, or the goal, means nothing, beside the
	// tolerance: a tenth of almost nothing is less than what the runtime does beside.
	slack float64
}

type figureKind int

const (
	// stable figures are the same in every run. The worst pass counts, and the record has them.
	stable figureKind = iota
	// noisy figures depend on what else the machine does. The best pass counts, for each side.
	noisy
	// loose figures are neither judged nor recorded.
	loose
)

// A goal that is missed by more fails the run. Times are compared loosely, because a machine
// that others use makes them differ by as much. What rounds to nothing is not missed.
const (
	stableTolerance = 0.10
	noisyTolerance  = 0.20
	nothing         = 0.0005
)

func timeFigure(name string, goal goal) figure {
	return figure{name: name, kind: noisy, goal: goal}
}

func stableFigure(name string, goal goal, slack float64) figure {
	return figure{name: name, goal: goal, slack: slack}
}

func looseFigure(name string) figure { return figure{name: name, kind: loose} }

// finding is a figure that was measured: of each side, the pass that counts.
type finding struct {
	figure       figure
	theirs, ours float64
	// ratio is how many times less ours is, 0 if there is no saying.
	ratio  float64
	spread string
}

// newFinding is of all passes of both sides.
func newFinding(f figure, theirs, ours []float64) finding {
	n := finding{figure: f, theirs: f.counted(theirs), ours: f.counted(ours)}
	n.spread = fmt.Sprintf("%s / %s %%", spread(theirs), spread(ours))
	if n.ours > 0 {
		n.ratio = n.theirs / n.ours
	}
	return n
}

// counted is the pass that counts.
func (f figure) counted(passes []float64) float64 {
	if f.kind == noisy {
		return slices.Min(passes)
	}
	return slices.Max(passes)
}

// spread is how far the passes lie apart, in percent of the best.
func spread(passes []float64) string {
	best := slices.Min(passes)
	worst := slices.Max(passes)
	if best == worst { // both may be 0
		return "0"
	}
	if best <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", 100*(worst/best-1))
}

// digits prints a number with three digits or more.
func digits(number float64) string {
	switch {
	case number < 10:
		return fmt.Sprintf("%.2f", number)
	case number < 100:
		return fmt.Sprintf("%.1f", number)
	}
	return fmt.Sprintf("%.0f", number)
}

func (n finding) ratioText() string {
	if n.ratio == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", n.ratio)
}

// missing is by how much of its goal a figure misses it, not more than nothing if it does not. A
// figure within the slack counts as equal.
func (n finding) missing() float64 {
	goal := n.figure.goal
	switch goal.kind {
	case atMost:
		more := n.ours - n.figure.slack - goal.number
		if more > 0 {
			return more / goal.number
		}
	case timesLess:
		if n.ratio > 0 {
			return 1 - n.ratio/goal.number
		}
	}
	return 0
}

// isMissed says whether there is a goal that is missed, by little or more.
func (n finding) isMissed() bool { return n.missing() > nothing }

// verdict says whether the goal is reached, and whether the run fails if not.
func (n finding) verdict() (text string, failed bool) {
	tolerance := stableTolerance
	if n.figure.kind == noisy {
		tolerance = noisyTolerance
	}
	missing := n.missing()
	switch {
	case n.figure.goal.kind == noGoal:
		return "-", false
	case !n.isMissed():
		return "PASS", false
	case math.IsInf(missing, 1):
		return "FAIL", true
	case missing > tolerance:
		return fmt.Sprintf("FAIL: short by %.0f %%", 100*missing), true
	}
	return fmt.Sprintf("short by %.1f %%", 100*missing), false
}
