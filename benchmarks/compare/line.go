package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// line is one workload: done by both sides in turn, and some figures of it.
type line struct {
	// name begins with the workload's numbers in README.md, -- if it has no goal.
	name    string
	figures []figure
	// task is the workload, without a side.
	task client.Task
	// theirItems is how many items client-go gets, if not as many: where theirs takes
	// minutes or gigabytes. There is no ratio then, and so no goal may be one.
	theirItems int
	passes     int
	// floor says that there is a floor to measure.
	floor bool
	// long lines are not part of the short form.
	long bool
}

// unequal says that client-go gets another number of items.
func (l line) unequal() bool { return l.theirItems > 0 && l.theirItems != l.task.Items }

// sides are the sides measured.
func (l line) sides() []sides.Side {
	all := []sides.Side{sides.ClientGo, sides.Ours}
	if l.floor {
		all = append(all, sides.Floor)
	}
	return all
}

// stable says whether any figure of the line is compared with the record.
func (l line) stable() bool { return slices.ContainsFunc(l.figures, figure.recorded) }

// measured are the passes of a line.
type measured struct {
	line
	theirs, ours []client.Result
	// floors are those of the floor, nil if it was not measured.
	floors []client.Result
}

// measure does the passes, the sides in turn, so that whatever else the machine does
// meets both.
func (l line) measure(ctx context.Context, progress io.Writer, profiles string) (measured, error) {
	m := measured{line: l}
	for pass := range l.passes {
		for _, side := range l.sides() {
			task := l.task
			task.Side = side
			if side == sides.ClientGo && l.theirItems > 0 {
				task.Items = l.theirItems
			}
			if profiles != "" {
				name := strings.Map(fileRune, fmt.Sprintf("%s %s %d", l.name, side, pass+1))
				task.Profiles = filepath.Join(profiles, name)
			}
			fmt.Fprintf(progress, "%s: %s, pass %d of %d\n", l.name, side, pass+1, l.passes)
			result, err := client.Run(ctx, task)
			if err != nil {
				return m, fmt.Errorf("%s: %w", l.name, err)
			}
			if result.Missed > 0 {
				fmt.Fprintf(progress, "%s: %d collections near the peak were not seen: it may have been higher\n", l.name, result.Missed)
			}
			switch side {
			case sides.Ours:
				m.ours = append(m.ours, result)
			case sides.ClientGo:
				m.theirs = append(m.theirs, result)
			default:
				m.floors = append(m.floors, result)
			}
		}
	}
	return m, nil
}

// fileRune makes a file name of a line's.
func fileRune(r rune) rune {
	switch r {
	case ' ':
		return '-'
	case ',', ':', '[', ']':
		return -1
	}
	return r
}
