package calls

import (
	"context"
	"errors"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
)

const (
	// waitedFor is the number of checkers of one wait.
	waitedFor = 10_000
	// waitRounds is the number of rounds of long waits.
	waitRounds = 5
)

func waitLines() []Line {
	return []Line{Line{Name: "W WaitFor of 10,000 done checkers", Unit: microsecondsPerCall, Goal: 1, measure: waits}.timeOnly()}
}

var errNotDone = errors.New("a checker that is done is waited for")

// done is a checker that is done.
type done struct{ channel chan struct{} }

func (d done) Name() string { return "done" }

func (d done) Done() <-chan struct{} { return d.channel }

// waits waits for checkers that are all done.
func waits(Scale) (Result, error) {
	checker := done{channel: make(chan struct{})}
	close(checker.channel)
	var theirCheckers []theircache.DoneChecker
	var ourCheckers []ourcache.DoneChecker
	for range waitedFor {
		theirCheckers = append(theirCheckers, checker)
		ourCheckers = append(ourCheckers, checker)
	}
	roundOf := func(wait func() bool) round {
		return round{work: func() error {
			if !wait() {
				return errNotDone
			}
			return nil
		}}
	}
	ctx := context.Background()
	theirs := roundOf(func() bool { return theircache.WaitFor(ctx, "", theirCheckers...) })
	ours := roundOf(func() bool { return ourcache.WaitFor(ctx, "", ourCheckers...) })
	return turns{rounds: waitRounds, calls: 1, othersWork: true}.measure(theirs, ours)
}
