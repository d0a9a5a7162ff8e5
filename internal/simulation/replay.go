package simulation

import (
	"context"
	"math"
	"regexp"
	"strings"
	"sync"
)

// Runner runs a script once. It returns an error only if the script could not be run,
// or ctx ended before it was through; whatever came of the script itself, the death of
// its process included, is in the Result. It may be called concurrently.
type Runner func(ctx context.Context, script Script) (Result, error)

// Deaths are the kinds of failure of a script that did not come to its end: what its
// process died of. Failures begin with the kind and a colon.
const (
	DeathPanic    = "panic"
	DeathDeadlock = "deadlock"
	DeathRace     = "data race"
	DeathHang     = "hang" // it took longer than it may, in real time
	DeathOther    = "died"
)

// tagged finds the guarantees or behaviours that a failure names, as in "1m2s: G2, G11: ...".
var tagged = regexp.MustCompile(`(?:^|: )([A-Z][0-9]+(?:, [A-Z][0-9]+)*): `)

// FailureKind is what a failure is of: a death, or the guarantees that it names. Two failures
// of one kind have probably one cause; where, when and to what it happened is not in it.
func FailureKind(failure string) string {
	for _, death := range []string{DeathPanic, DeathDeadlock, DeathRace, DeathHang, DeathOther} {
		if strings.HasPrefix(failure, death+": ") {
			return death
		}
	}
	if found := tagged.FindStringSubmatch(failure); found != nil {
		return found[1]
	}
	return "untagged"
}

// IsDeath says whether a failure of that kind ended the process.
func IsDeath(kind string) bool {
	switch kind {
	case DeathPanic, DeathDeadlock, DeathRace, DeathHang, DeathOther:
		return true
	}
	return false
}

// Kind is that of the first failure, for the others may follow from it; empty if
// nothing failed.
func (r Result) Kind() string {
	if len(r.Failures) == 0 {
		return ""
	}
	return FailureKind(r.Failures[0])
}

// Replayed is what came of running one script many times.
type Replayed struct {
	Runs int
	// Kinds is how many of the runs failed, by the kind of their first failure.
	Kinds map[string]int
	// Example is one of the runs that failed, of the kind that was asked for if there is one.
	Example Result
}

// Failed is how many of the runs failed, of whatever kind.
func (r Replayed) Failed() int {
	failed := 0
	for _, n := range r.Kinds {
		failed += n
	}
	return failed
}

// Replay runs a script the given number of times, so many at once. A seed fixes neither
// the schedule nor the order of maps: one run more or less says little. The example will
// be of the kind, if any run is. When ctx ends it returns what there is.
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

// FailsOnce returns a run of the script that failed with that kind, of at most so many
// runs, and whether there was one.
func FailsOnce(ctx context.Context, run Runner, script Script, kind string, times, atOnce int) (failed Result, found bool, err error) {
	err = repeat(ctx, run, script, times, atOnce, func(r Result) bool {
		if r.Kind() == kind {
			failed, found = r, true
		}
		return !found
	})
	return failed, found, err
}

// repeat runs a script so many times and tells of each run, one at a time, until nobody
// wants more. What it tells to is the caller's own code and may not call back.
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

// RunsToTrust is how often a script that may be healthy has to hold before it counts
// for healthy, given that a faulty one failed in so many of so many runs: so often that
// one like it would have failed with a likelihood of 95%, at least twice and at most so
// many times.
func RunsToTrust(failed, of, most int) int {
	const least, trust = 2, 0.95
	if failed >= of {
		return max(1, min(least, most))
	}
	// Nothing failed says less than that nothing fails; count it as half of one.
	rate := max(0.5, float64(failed)) / float64(of)
	needed := int(math.Ceil(math.Log(1-trust) / math.Log(1-rate)))
	return max(1, min(max(least, needed), most))
}
