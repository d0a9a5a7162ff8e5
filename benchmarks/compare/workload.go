package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/watchmirror/cache/benchmarks/calls"
)

// workload is measured of both sides.
type workload struct {
	// title begins with the workload's numbers in README.md.
	title string
	// isSimple: it is one of the calls that programs make first.
	isSimple bool
	// isLong: it is not part of the short form.
	isLong  bool
	figures []figure
	measure func(ctx context.Context, progress io.Writer) ([]finding, error)
}

// workloads returns all, in the order of README.md.
func workloads(s scale) []workload {
	var all []workload
	for _, l := range s.lines() {
		all = append(all, l.workload())
	}
	for _, l := range calls.Lines() {
		all = append(all, callWorkload(l, s.calls))
	}
	slices.SortStableFunc(all, func(a, b workload) int {
		return cmp.Compare(a.number(), b.number())
	})
	return all
}

// number is what the title begins with.
func (w workload) number() string {
	number, _, _ := strings.Cut(w.title, " ")
	return number
}

// isShort reports whether it is part of the short form: one of its figures is recorded.
func (w workload) isShort() bool {
	isRecorded := func(f figure) bool { return f.kind == stable }
	return !w.isLong && slices.ContainsFunc(w.figures, isRecorded)
}

// callWorkload is of a call, whose sides take turns in this process.
func callWorkload(l calls.Line, s calls.Scale) workload {
	main := timeFigure(l.Unit, goal{})
	if l.IsMemory() {
		main = stableFigure(l.Unit, goal{}, 1)
	}
	if l.Goal > 0 {
		main.goal = less(l.Goal)
	}
	if l.AtMost > 0 {
		main.goal = upTo(l.AtMost)
	}
	w := workload{title: l.Name, isSimple: l.Simple, isLong: l.FullOnly, figures: []figure{main}}
	if l.CountsAllocations() {
		_, item, _ := strings.Cut(l.Unit, "/")
		w.figures = append(w.figures, stableFigure("allocations/"+item, goal{}, 0.05))
	}
	w.measure = func(ctx context.Context, progress io.Writer) ([]finding, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fmt.Fprintf(progress, "%s\n", l.Name)
		result, err := l.Measure(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		return callFindings(w.figures, result), nil
	}
	return w
}

// callFindings are of the figures of a call: what it takes, and its allocations, if they are
// counted.
func callFindings(figures []figure, result calls.Result) []finding {
	n := newFinding(figures[0], []float64{result.Theirs}, []float64{result.Ours})
	n.ratio = result.Ratio
	n.spread = fmt.Sprintf("%.2f-%.2f", result.Low, result.High)
	findings := []finding{n}
	for _, f := range figures[1:] {
		theirs := []float64{result.Allocations[0]}
		ours := []float64{result.Allocations[1]}
		findings = append(findings, newFinding(f, theirs, ours))
	}
	return findings
}
