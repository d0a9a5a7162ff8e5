// Command cmd runs many scripts of the simulation, each in virtual time, and prints their failures.
// Run it anywhere inside the module:
//
//	go run ./internal/simulation/cmd -seeds 2000 -from 0
//
// A seed determines its script and the mirrors' jitter, but not the schedule of goroutines. So a seed
// may fail in one of a hundred runs. Scripts run in worker processes, since a script that hangs or
// panics ends its process; that is a failure, and the next script gets a new process.
//
// For a failure the command prints the seed, the failures, and how to run it again. Then it determines
// the failure rate of the first seed of each kind of failure in 200 runs, and shrinks its script as
// long as it fails in the same way:
//
//	go run ./internal/simulation/cmd -seeds 1 -from 4711   one seed, 200 times
//	go run ./internal/simulation/cmd -script small.json    a script from a file, the same
//
// Add the small script of a fixed fault to testdata/scripts, which the tests run. With "go run -race"
// the workers also detect data races.
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

	"github.com/watchmirror/cache/internal/simulation/script"
)

func main() {
	if slices.Equal(os.Args[1:], []string{workerFlag}) {
		os.Exit(work())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, workerCommand)
	stop()
	os.Exit(code)
}

// workerCommand returns the command of a worker: this program.
func workerCommand() (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the path of the worker: %w", err)
	}
	return exec.Command(path, workerFlag), nil
}

// run runs the command and returns its exit code: 0 without failures, 1 with failures, 2 for wrong
// arguments.
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
		held, err = runOneScript(ctx, opts, workers, printer)
	} else {
		held, err = runManySeeds(ctx, opts, workers, printer)
	}
	if err != nil {
		fmt.Fprintln(progress, "simulation:", err)
	}
	if err != nil || !held {
		return 1
	}
	return 0
}

// runOneScript runs a script repeatedly, and says whether it never failed.
func runOneScript(ctx context.Context, opts options, workers *pool, p *printer) (held bool, err error) {
	input, err := loadScript(opts)
	if err != nil {
		return false, err
	}
	e := failureAnalysis{opts: opts, workers: workers, printer: p}
	replayed, err := e.replay(ctx, input, "")
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
	return false, e.shrink(ctx, input, replayed, replayed.Example.Kind())
}

// loadScript returns the script of the file or, without a file, of the only seed.
func loadScript(opts options) (script.Script, error) {
	if opts.script == "" {
		return script.Generate(opts.from), nil
	}
	text, err := os.ReadFile(opts.script)
	if err != nil {
		return script.Script{}, fmt.Errorf("-script: %w", err)
	}
	input, err := script.Decode(text)
	if err != nil {
		return script.Script{}, fmt.Errorf("-script %s: %w", opts.script, err)
	}
	return input, nil
}
