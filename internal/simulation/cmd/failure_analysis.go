package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// failureAnalysis determines the failure rate of failed seeds, and shrinks their scripts.
type failureAnalysis struct {
	opts    options
	workers *pool
	printer *printer
}

// analyzeAll analyzes the first seed of each kind of failure, the lowest seeds first.
func (e failureAnalysis) analyzeAll(ctx context.Context, t *seedResults) error {
	results := slices.SortedFunc(maps.Values(t.first), func(a, b script.Result) int {
		return cmp.Compare(a.Seed, b.Seed)
	})
	for i, result := range results {
		if i >= e.opts.examine || e.opts.replay == 0 {
			e.printer.trace(result)
			continue
		}
		if err := e.analyze(ctx, result); err != nil {
			return err
		}
	}
	return nil
}

// analyze analyzes a failed seed.
func (e failureAnalysis) analyze(ctx context.Context, result script.Result) error {
	input, kind := script.Generate(result.Seed), result.Kind()
	e.printer.examining(result)
	replayed, err := e.replay(ctx, input, kind)
	if err != nil {
		return err
	}
	if !e.opts.shrink {
		e.printer.trace(result)
		return ctx.Err()
	}
	if replayed.Example.Kind() != kind {
		replayed.Example = result
	}
	return e.shrink(ctx, input, replayed, kind)
}

// replay runs a script repeatedly, at least once, and prints its failure rate. All runs together are
// limited to the time for shrinking, since each run of a script that hangs may take the whole limit.
func (e failureAnalysis) replay(ctx context.Context, input script.Script, kind string) (script.Replayed, error) {
	replayed, err := e.count(ctx, input, kind, max(1, e.opts.replay), e.opts.shrinkFor)
	if err == nil {
		e.printer.replayed(replayed)
	}
	return replayed, err
}

// count runs a script a number of times, or until the time is up.
func (e failureAnalysis) count(ctx context.Context, input script.Script, kind string, times int, within time.Duration) (script.Replayed, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return script.Replay(ctx, e.runner(kind), input, kind, times, e.opts.workers)
}

// shrink shrinks a script that fails with kind at the replayed rate, and prints the result and its
// failure.
func (e failureAnalysis) shrink(ctx context.Context, input script.Script, replayed script.Replayed, kind string) error {
	within, cancel := context.WithTimeout(ctx, e.opts.shrinkFor)
	defer cancel()
	run := e.runner(kind)
	example, failed := replayed.Example, max(1, replayed.Kinds[kind])
	trust := script.RunsToTrust(failed, max(failed, replayed.Runs), max(1, e.opts.replay))
	var problem error
	tried := 0
	small := script.Shrink(within, input, func(candidate script.Script) bool {
		if problem != nil {
			return false
		}
		tried++
		result, found, err := script.FailsOnce(within, run, candidate, kind, trust, e.opts.workers)
		if found {
			example = result
		}
		problem = err
		return found
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	if problem != nil {
		return problem
	}
	again, err := e.count(ctx, small, kind, e.opts.replay, e.opts.shrinkFor/10)
	if err != nil {
		return err
	}
	e.printer.shrunk(shrinking{from: input, to: small, tried: tried, trust: trust, complete: within.Err() == nil, again: again, example: example})
	return nil
}

// runner returns a runner for scripts that fail with kind, with a lower limit if they hang, since each
// run then takes the whole limit.
func (e failureAnalysis) runner(kind string) script.Runner {
	limit := e.opts.limit
	if kind == script.DeathHang {
		limit = max(limit/6, min(limit, 5*time.Second))
	}
	return func(ctx context.Context, input script.Script) (script.Result, error) {
		return e.workers.runWithin(ctx, input, limit)
	}
}
