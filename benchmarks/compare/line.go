package main

import (
	"context"
	"fmt"
	"io"

	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// line is a workload that both sides do in processes of their own, in turn.
type line struct {
	// name begins with the workload's numbers in README.md.
	name    string
	figures []figure
	// task is the workload, without a side.
	task client.Task
	// theirItems is how many items client-go gets, if not as many: where theirs takes
	// minutes or gigabytes. There is no ratio then, and so no goal may be one.
	theirItems int
	passes     int
	// long lines are not part of the short form.
	long bool
	// first says that programs do this first.
	first bool
}

func (l line) title() string { return l.name }

func (l line) simple() bool { return l.first }

// unequal reports whether client-go gets another number of items.
func (l line) unequal() bool { return l.theirItems > 0 && l.theirItems != l.task.Items }

func (l line) recordedFigures() []string {
	if l.long {
		return nil
	}
	var names []string
	for _, f := range l.figures {
		if f.recorded() {
			names = append(names, f.name)
		}
	}
	return names
}

// results are the passes of a line.
type results struct{ theirs, ours []client.Result }

// measure does the passes, the sides in turn, so that whatever else the machine does
// meets both.
func (l line) measure(ctx context.Context, progress io.Writer) (measured, error) {
	var r results
	for pass := range l.passes {
		theirs, err := l.pass(ctx, progress, sides.ClientGo, pass)
		if err != nil {
			return measured{}, err
		}
		ours, err := l.pass(ctx, progress, sides.Ours, pass)
		if err != nil {
			return measured{}, err
		}
		r.theirs = append(r.theirs, theirs)
		r.ours = append(r.ours, ours)
	}
	return l.measured(r), nil
}

// pass does one pass of a side.
func (l line) pass(
	ctx context.Context, progress io.Writer, side sides.Side, pass int,
) (client.Result, error) {
	task := l.task
	task.Side = side
	if side == sides.ClientGo && l.theirItems > 0 {
		task.Items = l.theirItems
	}
	fmt.Fprintf(progress, "%s: %s, pass %d of %d\n", l.name, side, pass+1, l.passes)
	result, err := client.Run(ctx, task)
	if err != nil {
		return result, fmt.Errorf("%s: %w", l.name, err)
	}
	if result.Missed > 0 {
		fmt.Fprintf(progress, "%s: %d collections near the peak were not seen: it may have been higher\n", l.name, result.Missed)
	}
	return result, nil
}

// measured returns the figures of all passes.
func (l line) measured(r results) measured {
	m := measured{title: l.name, unequal: l.unequal(), simple: l.simple()}
	if m.unequal {
		m.title += fmt.Sprintf(" (client-go: %d of %d)", l.theirItems, l.task.Items)
	}
	for _, f := range l.figures {
		s := samples{theirs: f.sample(r.theirs), ours: f.sample(r.ours)}
		m.figures = append(m.figures, finding{figure: f, samples: s})
	}
	return m
}
