package main

import (
	"context"
	"sync"
	"time"

	"github.com/watchmirror/cache/internal/simulation"
)

// tally is what has come of the seeds so far.
type tally struct {
	begun time.Time
	from  uint64

	mu                         sync.Mutex
	runs, failed               int
	virtual                    time.Duration
	checks, requests, received int
	// first is the result of the lowest seed of each kind of failure.
	first map[string]simulation.Result
}

// add takes a result and returns how many have failed by now.
func (t *tally) add(r simulation.Result) (failed int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs++
	t.virtual += r.Virtual
	t.checks += r.Checks
	t.requests += r.Requests
	t.received += r.Received
	if kind := r.Kind(); kind != "" {
		t.failed++
		if known, ok := t.first[kind]; !ok || r.Seed < known.Seed {
			t.first[kind] = r
		}
	}
	return t.failed
}

// manySeeds runs the seeds, looks closer at some of those that fail, prints the summary
// and says whether all held.
func manySeeds(ctx context.Context, opts options, workers *pool, p *printer) (held bool, err error) {
	t := &tally{begun: time.Now(), from: opts.from, first: map[string]simulation.Result{}}
	err = runSeeds(ctx, opts, workers, p, t)
	took := time.Since(t.begun) // what follows is not the seeds' time
	if err == nil {
		e := examination{opts: opts, workers: workers, printer: p}
		err = e.each(ctx, t)
	}
	p.summary(t, took)
	return t.failed == 0 && t.runs == opts.seeds, err
}

// runSeeds runs the seeds, as many at once as there are workers, until enough have failed.
func runSeeds(ctx context.Context, opts options, workers *pool, p *printer, t *tally) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	enough := make(chan struct{})
	var once sync.Once
	one := func(script simulation.Script) {
		result, err := workers.run(ctx, script)
		if err != nil {
			cancel(err)
			return
		}
		failed := t.add(result)
		p.result(result)
		if opts.most > 0 && failed >= opts.most {
			once.Do(func() { close(enough) })
		}
	}
	scripts := make(chan simulation.Script)
	var running sync.WaitGroup
	for range opts.workers {
		running.Go(func() {
			for script := range scripts {
				select {
				case <-enough: // it was handed out at that very moment, and is not begun
				default:
					one(script)
				}
			}
		})
	}
	hand(ctx, opts, scripts, enough, func() { p.progressOf(t) })
	close(scripts)
	running.Wait()
	return context.Cause(ctx)
}

// hand hands out the scripts of the seeds until it is enough, and says now and then how
// far it is.
func hand(ctx context.Context, opts options, scripts chan<- simulation.Script, enough <-chan struct{}, progress func()) {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	next := simulation.Generate(opts.from)
	for i := 0; i < opts.seeds; {
		select {
		case scripts <- next:
			i++
			next = simulation.Generate(opts.from + uint64(i))
		case <-ticker.C:
			progress()
		case <-enough:
			return
		case <-ctx.Done():
			return
		}
	}
}
