// Command cmd runs the simulation: many scripts, each in virtual time, and says what did
// not hold in them. It is run anywhere inside the module:
//
//	go run ./internal/simulation/cmd -seeds 2000 -from 0
//
// A script is made from its seed, always the same one, and so is the jitter of the
// mirrors; the schedule of goroutines is not. So one seed may fail in one run of a
// hundred. Scripts run in worker processes, for one that hangs or panics takes its
// process along: that is a failure as any other, and the next script gets a new process.
//
// Of a failure the command prints the seed, what failed, and how to run it again. Then
// it takes the first seed of each kind of failure, counts in how many of 200 runs it
// fails, and makes its script as small as it can while it fails in the same way:
//
//	go run ./internal/simulation/cmd -seeds 1 -from 4711   one seed, 200 times
//	go run ./internal/simulation/cmd -script small.json    a script from a file, the same
//
// A small script of a fault that is fixed belongs into testdata/scripts, and is run by
// the tests from then on. With "go run -race" the workers look for data races too.
//
// The last line of its output is the summary; it exits with 1 if anything failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"

	"github.com/watchmirror/cache/internal/simulation"
)

func main() {
	if slices.Equal(os.Args[1:], []string{workerFlag}) {
		os.Exit(work())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, ourselves)
	stop()
	os.Exit(code)
}

// ourselves makes the command that runs a worker: this one.
func ourselves() (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the path of the worker: %w", err)
	}
	return exec.Command(path, workerFlag), nil
}

// run is the command. It returns the code to exit with: 0 if all held, 1 if something
// did not, 2 if it was called wrongly.
func run(ctx context.Context, args []string, out, progress io.Writer, worker func() (*exec.Cmd, error)) int {
	opts, err := parse(args, progress)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(progress, "simulation:", err)
		return 2
	}
	workers := newPool(worker, opts.workers, opts.limit)
	defer workers.close()
	printer := &printer{out: out, progress: progress, opts: opts}

	held := false
	if opts.script != "" || opts.seeds == 1 {
		held, err = oneScript(ctx, opts, workers, printer)
	} else {
		held, err = manySeeds(ctx, opts, workers, printer)
	}
	if err != nil {
		fmt.Fprintln(progress, "simulation:", err)
	}
	if err != nil || !held {
		return 1
	}
	return 0
}

// oneScript runs a script as often as wanted, and says whether it held.
func oneScript(ctx context.Context, opts options, workers *pool, p *printer) (held bool, err error) {
	script, err := theScript(opts)
	if err != nil {
		return false, err
	}
	e := examination{opts: opts, workers: workers, printer: p}
	replayed, err := e.replay(ctx, script, "")
	if err != nil {
		return false, err
	}
	if replayed.Failed() == 0 {
		return replayed.Runs > 0, ctx.Err()
	}
	p.failures(replayed.Example)
	if !opts.shrink {
		p.trace(replayed.Example)
		return false, ctx.Err()
	}
	return false, e.shrink(ctx, script, replayed, replayed.Example.Kind())
}

// theScript is the one of the file or, without a file, that of the only seed.
func theScript(opts options) (simulation.Script, error) {
	if opts.script == "" {
		return simulation.Generate(opts.from), nil
	}
	text, err := os.ReadFile(opts.script)
	if err != nil {
		return simulation.Script{}, fmt.Errorf("-script: %w", err)
	}
	script, err := simulation.Decode(text)
	if err != nil {
		return simulation.Script{}, fmt.Errorf("-script %s: %w", opts.script, err)
	}
	return script, nil
}
