package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// line is a workload that both sides do in processes of their own, in turn.
type line struct {
	name string
	task client.Task // without a side
	// theirItems is how many items client-go gets, if not as many.
	theirItems int
	figures    []figure
	passes     int
	isSimple   bool
	isLong     bool
}

// passTimeout is how long a pass of a side may take.
const passTimeout = 20 * time.Minute

func (l line) workload() workload {
	return workload{
		title:    l.name,
		isSimple: l.isSimple,
		isLong:   l.isLong,
		figures:  l.figures,
		measure:  l.measure,
	}
}

// measure does the passes, the sides in turn, so that whatever else the machine does meets both.
func (l line) measure(ctx context.Context, progress io.Writer) ([]finding, error) {
	passes := map[sides.Side][]client.Result{}
	for pass := range l.passes {
		for _, side := range []sides.Side{sides.ClientGo, sides.Ours} {
			fmt.Fprintf(progress, "%s: %s, pass %d of %d\n", l.name, side, pass+1, l.passes)
			result, err := l.pass(ctx, side)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.name, err)
			}
			passes[side] = append(passes[side], result)
		}
	}
	var findings []finding
	for _, f := range l.figures {
		theirs := f.of(passes[sides.ClientGo])
		ours := f.of(passes[sides.Ours])
		findings = append(findings, newFinding(f, theirs, ours))
	}
	return findings, nil
}

// pass does one pass of a side.
func (l line) pass(ctx context.Context, side sides.Side) (client.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	task := l.task
	task.Side = side
	if side == sides.ClientGo && l.theirItems > 0 {
		task.Items = l.theirItems
	}
	result, err := client.Run(ctx, task)
	if err != nil {
		return nil, err
	}
	for _, f := range l.figures {
		if _, ok := result[f.name]; !ok {
			return nil, fmt.Errorf("%s has no figure %q", task.Work, f.name)
		}
	}
	return result, nil
}

// of returns the figure of each result.
func (f figure) of(results []client.Result) []float64 {
	var numbers []float64
	for _, result := range results {
		numbers = append(numbers, result[f.name])
	}
	return numbers
}
