package calls

import (
	"slices"
	"time"
)

// Line is a line of the table.
type Line struct {
	// Name begins with the number of the line.
	Name string
	// Unit is that of the figures, such as ns/call.
	Unit string
	// Goal is the least ratio of the other side's figure to ours, 0 if there is none.
	Goal float64
	// AtMost is the largest figure of ours, 0 if any is good enough.
	AtMost float64
	// Simple lines are of the calls that programs make first.
	Simple bool
	// FullOnly lines are not part of the short form.
	FullOnly bool
	// TimeOnly lines have no figure that is the same in every run.
	TimeOnly bool

	measure func(s Scale) (Result, error)
}

// The units of figures.
const (
	nsPerCall      = "ns/call"
	nsPerObject    = "ns/object"
	usPerCall      = "us/call"
	usPerEvent     = "us/event"
	bytesPerObject = "B/object"
)

// Scale is how much is measured.
type Scale struct {
	// Objects is the number of objects of a store.
	Objects int
	// Rounds is the number of rounds of lines of single calls.
	Rounds int
}

var (
	// Full is the scale of the goals.
	Full = Scale{Objects: 100_000, Rounds: 100}
	// Short suffices for allocations and bytes.
	Short = Scale{Objects: 20_000, Rounds: 2}
)

// Result is a measured line.
type Result struct {
	// Theirs and Ours are in the line's unit, medians of all rounds.
	Theirs, Ours float64
	// Ratio is the median of the other side's figures divided by ours: above 1 ours is better.
	// Low and High are its quartiles.
	Ratio, Low, High float64
	// Allocations are those of a call, of the other side and ours.
	Allocations [2]float64
}

// IsMemory reports whether the figures are the same in every run: memory, and not time.
func (l Line) IsMemory() bool { return l.Unit == bytesPerObject }

// CountsAllocations reports whether the result has those of a call.
func (l Line) CountsAllocations() bool { return !l.IsMemory() && !l.TimeOnly }

// Measure measures a line.
func (l Line) Measure(s Scale) (Result, error) {
	result, err := l.measure(s)
	if l.Unit == usPerCall || l.Unit == usPerEvent {
		result.Theirs /= float64(time.Microsecond)
		result.Ours /= float64(time.Microsecond)
	}
	return result, err
}

// Lines returns all lines.
func Lines() []Line {
	return slices.Concat(
		queueLines(),
		updateLines(),
		getLines(),
		besideLines(),
		readLines(),
		replaceLines(),
		valueLines(),
		namespaceLines(),
		memoryLines(),
		peerLines(),
	)
}
