package main

import (
	"context"
	"os/exec"
	"time"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// pool has a number of workers. It starts them on demand, and replaces those that died.
type pool struct {
	command func() (*exec.Cmd, error)
	limit   time.Duration
	// idle has the idle workers; nil is one not yet started.
	idle chan *process
}

func newPool(command func() (*exec.Cmd, error), workers int, limit time.Duration) *pool {
	p := &pool{command: command, limit: limit, idle: make(chan *process, workers)}
	for range workers {
		p.idle <- nil
	}
	return p
}

// run is a script.Runner. It waits for a worker, and then for its result. A script
// whose worker dies, or takes longer than the limit, has failed.
func (p *pool) run(ctx context.Context, input script.Script) (script.Result, error) {
	return p.runWithin(ctx, input, p.limit)
}

func (p *pool) runWithin(ctx context.Context, input script.Script, limit time.Duration) (script.Result, error) {
	var worker *process
	select {
	case <-ctx.Done():
		return script.Result{}, ctx.Err()
	case worker = <-p.idle:
	}
	defer func() { p.idle <- worker }()
	if worker == nil {
		started, err := start(p.command)
		if err != nil {
			return script.Result{}, err
		}
		worker = started
	}
	result, alive := worker.runScript(ctx, input, limit)
	if !alive {
		worker = nil
	}
	// A worker that was ended because of ctx is no failure of the script.
	return result, ctx.Err()
}

// close ends the workers and waits for them. No run may be in progress.
func (p *pool) close() {
	for range cap(p.idle) {
		if worker := <-p.idle; worker != nil {
			worker.end()
		}
	}
}
