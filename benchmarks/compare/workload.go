package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/watchmirror/cache/benchmarks/calls"
)

// workload is a line of the table.
type workload interface {
	// title begins with the line's numbers in README.md.
	title() string
	// simple reports whether it is one of the calls that programs make first.
	simple() bool
	// recordedFigures returns the figures that are compared with the record.
	recordedFigures() []string
	measure(ctx context.Context, progress io.Writer) (measured, error)
}

// measured has the figures of a workload.
type measured struct {
	title   string
	figures []finding
	// unequal says that the sides got different numbers of items: there is no ratio.
	unequal bool
	// simple says that it is one of the calls that programs make first.
	simple bool
}

// finding is a figure that was measured.
type finding struct {
	figure  figure
	samples samples
}

// workloads returns all, in the order of README.md.
func workloads(s scale) []workload {
	var all []workload
	for _, l := range lines(s) {
		all = append(all, l)
	}
	for _, l := range calls.Lines() {
		all = append(all, callLine{line: l, scale: s.calls})
	}
	slices.SortStableFunc(all, func(a, b workload) int { return strings.Compare(order(a), order(b)) })
	return all
}

// order is what workloads are sorted by.
func order(w workload) string {
	number, _, _ := strings.Cut(w.title(), " ")
	return number
}

// callLine is a line of calls, whose sides take turns in this process.
type callLine struct {
	line  calls.Line
	scale calls.Scale
}

func (l callLine) title() string { return l.line.Name }

func (l callLine) simple() bool { return l.line.Simple }

func (l callLine) recordedFigures() []string {
	if l.line.TimeOnly {
		return nil
	}
	if l.line.Stable() {
		return []string{l.figure().name}
	}
	return []string{l.allocations().name}
}

func (l callLine) figure() figure {
	f := figure{name: l.line.Unit, format: "%.1f", goal: less(l.line.Goal), noisy: !l.line.Stable(), slack: 1}
	if f.noisy {
		f.slack = 0
	}
	if l.line.AtMost > 0 {
		f.goal = upTo(l.line.AtMost)
	}
	return f
}

// allocations are of a call, or of what else the unit says.
func (l callLine) allocations() figure {
	_, what, _ := strings.Cut(l.line.Unit, "/")
	return figure{name: "allocations/" + what, format: "%.2f", slack: 0.05}
}

func (l callLine) measure(ctx context.Context, progress io.Writer) (m measured, err error) {
	if err := ctx.Err(); err != nil {
		return m, err
	}
	fmt.Fprintf(progress, "%s\n", l.line.Name)
	result, err := l.line.Measure(l.scale)
	if err != nil {
		return m, fmt.Errorf("%s: %w", l.line.Name, err)
	}
	turns := finding{figure: l.figure(), samples: samples{
		theirs: same(result.Theirs),
		ours:   same(result.Ours),
		ratios: sample{best: result.High, median: result.Ratio, worst: result.Low},
	}}
	m = measured{title: l.title(), figures: []finding{turns}, simple: l.simple()}
	if result.Allocations != nil {
		m.figures = append(m.figures, finding{figure: l.allocations(), samples: samples{
			theirs: same(result.Allocations[0]),
			ours:   same(result.Allocations[1]),
		}})
	}
	return m, nil
}
