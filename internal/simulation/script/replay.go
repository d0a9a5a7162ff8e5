package script

import (
	"context"
	"math"
	"sync"
)

// Runner runs a script once. Failures of the script, even if its process died, are in the Result. It
// returns an error if the script could not be run or ctx ended first. It may be called concurrently.
type Runner func(ctx context.Context, script Script) (Result, error)

// Replayed is the outcome of repeated runs of one script.
type Replayed struct {
	Runs int
	// Kinds are the numbers of failed runs, by the kind of their first failure.
	Kinds map[string]int
	// Example is a failed run, of the requested kind if there is one.
	Example Result
}

// Failed returns the number of failed runs.
func (r Replayed) Failed() int {
	failed := 0
	for _, n := range r.Kinds {
		failed += n
	}
	return failed
}

// Replay runs a script times times, atOnce of them concurrently. The Example is of kind if any run
// is. When ctx ends it returns the results so far.
func Replay(ctx context.Context, run Runner, script Script, kind string, times, atOnce int) (Replayed, error) {
	replayed := Replayed{Kinds: map[string]int{}}
	err := repeat(ctx, run, script, times, atOnce, func(r Result) bool {
		replayed.Runs++
		if k := r.Kind(); k != "" {
			replayed.Kinds[k]++
			if have := replayed.Example.Kind(); have == "" || have != kind && k == kind {
				replayed.Example = r
			}
		}
		return true
	})
	return replayed, err
}

// FailsOnce runs the script at most times times and returns the first run that failed with kind.
func FailsOnce(ctx context.Context, run Runner, script Script, kind string, times, atOnce int) (failed Result, found bool, err error) {
	err = repeat(ctx, run, script, times, atOnce, func(r Result) bool {
		if r.Kind() == kind {
			failed, found = r, true
		}
		return !found
	})
	return failed, found, err
}

// repeat runs a script times times and calls tell with each result, not concurrently, until tell
// returns false.
func repeat(ctx context.Context, run Runner, script Script, times, atOnce int, tell func(Result) (more bool)) error {
	var (
		mu      sync.Mutex
		left    = times
		enough  bool // those still under way have nobody to tell
		failure error
	)
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		left--
		return left >= 0 && !enough && ctx.Err() == nil
	}
	done := func(r Result, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case enough:
		case err == nil:
			enough = !tell(r)
		case ctx.Err() == nil:
			failure, enough = err, true
		}
	}
	var running sync.WaitGroup
	for range max(1, min(times, atOnce)) {
		running.Go(func() {
			for next() {
				done(run(ctx, script))
			}
		})
	}
	running.Wait()
	return failure
}

// RunsToTrust returns after how many passing runs a script counts as healthy, given that a faulty
// one failed in failed of of runs: the faulty one would have failed with a probability of 95%. The
// result is between 2 and most.
func RunsToTrust(failed, of, most int) int {
	const least, trust = 2, 0.95
	if failed >= of {
		return max(1, min(least, most))
	}
	// No failure does not prove a rate of zero; count it as half a failure.
	rate := max(0.5, float64(failed)) / float64(of)
	needed := int(math.Ceil(math.Log(1-trust) / math.Log(1-rate)))
	return max(1, min(max(least, needed), most))
}
