package main

import (
	"fmt"
	"math"
)

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
	// timesMore is a number that must be so many times client-go's.
	timesMore
)

// less is the goal of so many times less, none for 0.
func less(times float64) goal {
	if times == none {
		return goal{}
	}
	return goal{timesLess, times}
}

// upTo is the goal of a number at most.
func upTo(number float64) goal { return goal{atMost, number} }

// String is the goal in the table.
func (g goal) String() string {
	switch g.kind {
	case atMost:
		if g.number == math.Trunc(g.number) {
			return fmt.Sprintf("<= %.0f", g.number)
		}
		return fmt.Sprintf("<= %.2f", g.number)
	case timesLess:
		return fmt.Sprintf("%.3gx", g.number)
	case timesMore:
		return fmt.Sprintf("%.3gx more", g.number)
	}
	return "-"
}

// A goal that is missed by more fails the run. Times are compared loosely, because a machine
// that others use makes them differ by as much. What rounds to nothing is not missed.
const (
	stableTolerance = 0.10
	noisyTolerance  = 0.20
	nothing         = 0.0005
)

// part is a number as a part of what it may be at most. Where that is nothing, any number
// is infinitely more than it.
func part(number, most float64) float64 {
	if number == most {
		return 1
	}
	return number / most
}

// missing is by how much of its goal a number of ours misses it: nothing or less if it
// does not. A figure within the slack counts as equal.
func (f figure) missing(number float64, s samples) float64 {
	number = max(0, number-f.slack)
	theirs := f.counted(s.theirs)
	switch f.goal.kind {
	case atMost:
		return part(number, f.goal.number) - 1
	case timesLess:
		if s.byTurns() {
			return 1 - s.ratios.median/f.goal.number
		}
		if number == 0 {
			return 0 // there is no less, whatever theirs is
		}
		return 1 - theirs/number/f.goal.number
	case timesMore:
		return 1 - number/theirs/f.goal.number
	}
	return 0
}

// tolerance is by how much of its goal a figure may miss it.
func (f figure) tolerance() float64 {
	if f.noisy {
		return noisyTolerance
	}
	return stableTolerance
}

// verdict says whether the goal is reached, and whether the run fails if not.
func (f figure) verdict(s samples) (text string, failed bool) {
	if f.goal.kind == noGoal {
		return "-", false
	}
	missing := f.missing(f.counted(s.ours), s)
	switch {
	case missing <= nothing:
		return "PASS", false
	case math.IsInf(missing, 1):
		return "FAIL", true
	case missing > f.tolerance():
		return fmt.Sprintf("FAIL: short by %.0f %%", 100*missing), true
	}
	return fmt.Sprintf("short by %.1f %%", 100*missing), false
}
