package main

import (
	"context"
	"sync"
	"time"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// seedResults has the results of the seeds so far.
type seedResults struct {
	begun time.Time
	from  uint64

	mu                         sync.Mutex
	runs, failed               int
	virtual                    time.Duration
	checks, requests, received int
	// first is the result of the lowest seed of each kind of failure.
	first map[string]script.Result
}

// add adds a result and returns the number of failed seeds.
func (t *seedResults) add(r script.Result) (failed int) {
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

// runManySeeds runs the seeds, analyzes some of the failed ones, prints the summary and says whether none
// failed.
func runManySeeds(ctx context.Context, opts options, workers *pool, p *printer) (held bool, err error) {
	t := &seedResults{begun: time.Now(), from: opts.from, first: map[string]script.Result{}}
	err = runSeeds(ctx, opts, workers, p, t)
	took := time.Since(t.begun) // what follows is not the seeds' time
	if err == nil {
		e := failureAnalysis{opts: opts, workers: workers, printer: p}
		err = e.analyzeAll(ctx, t)
	}
	p.summary(t, took)
	return t.failed == 0 && t.runs == opts.seeds, err
}

// runSeeds runs the seeds, one on each worker at a time, until enough have failed.
func runSeeds(ctx context.Context, opts options, workers *pool, p *printer, t *seedResults) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	enough := make(chan struct{})
	var once sync.Once
	one := func(input script.Script) {
		result, err := workers.run(ctx, input)
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
	scripts := make(chan script.Script)
	var running sync.WaitGroup
	for range opts.workers {
		running.Go(func() {
			for input := range scripts {
				select {
				case <-enough: // it was handed out at that very moment, and is not begun
				default:
					one(input)
				}
			}
		})
	}
	sendScripts(ctx, opts, scripts, enough, func() { p.progressOf(t) })
	close(scripts)
	running.Wait()
	return context.Cause(ctx)
}

// sendScripts sends the scripts of the seeds until enough have failed, and prints the progress periodically.
func sendScripts(ctx context.Context, opts options, scripts chan<- script.Script, enough <-chan struct{}, progress func()) {
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	next := script.Generate(opts.from)
	for i := 0; i < opts.seeds; {
		select {
		case scripts <- next:
			i++
			next = script.Generate(opts.from + uint64(i))
		case <-ticker.C:
			progress()
		case <-enough:
			return
		case <-ctx.Done():
			return
		}
	}
}
