package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// This file has the code that both suites share: running a check in real or virtual time, and its time limits. A check
// is a function that returns an error, so that tests can run the suites on faulty sources and stores.

// check is one subtest of a suite, on a T. Its name is a sentence that states the tested promise.
type check[T any] struct {
	name string
	// lacks returns the reason to skip the check, or "".
	lacks func(T) string
	run   func(T) error
	// decisive: if the check fails, the later ones are not run, since most would fail too.
	decisive bool
}

// pace has the time limits of a check.
type pace struct {
	virtual bool
	// patience bounds the wait for something that must happen; quiet is the wait for something that must not.
	patience, quiet time.Duration
}

// newPace returns the limits, with defaults for zero. Virtual time allows for retries after seconds. In real time
// patience allows for a busy machine, and only a failing check waits that long; a passing check waits for quiet.
func newPace(virtual bool, patience, quiet time.Duration) pace {
	p := pace{virtual: virtual, patience: time.Minute, quiet: 50 * time.Millisecond}
	if virtual {
		p.patience, p.quiet = 10*time.Minute, 10*time.Second
	}
	if patience > 0 {
		p.patience = patience
	}
	if quiet > 0 {
		p.quiet = quiet
	}
	return p
}

// runChecks runs each check as a subtest with its own T.
func runChecks[T any](t *testing.T, p pace, checks []check[T], start func(context.Context, testing.TB) T) {
	t.Helper()
	for _, c := range checks {
		passed := t.Run(c.name, func(t *testing.T) {
			lacking, err := runCheck(t, p, c, start)
			switch {
			case err != nil:
				t.Error(err)
			case lacking != "":
				t.Skip(lacking)
			}
		})
		if c.decisive && !passed {
			return
		}
	}
}

// runCheck runs one check on a new T, in a bubble if time is virtual. lacking is the reason for skipping it. The
// context passed to start ends before the cleanups of the test passed to start.
func runCheck[T any](t *testing.T, p pace, c check[T], start func(context.Context, testing.TB) T) (lacking string, err error) {
	t.Helper()
	run := func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		// A FailNow in start ends the goroutine; then this error remains.
		err = errors.New("what was to be checked could not be made")
		thing := start(ctx, t)
		if err = nil; c.lacks != nil {
			lacking = c.lacks(thing)
		}
		if lacking == "" {
			err = guarded(func() error { return c.run(thing) })
		}
	}
	if !p.virtual {
		run(t)
		return lacking, err
	}
	synctest.Test(t, run)
	return lacking, err
}

// guarded turns a panic into an error, so that the other checks still run.
func guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return do()
}

// inTime runs do and returns its error, or an error if do does not return within patience. Then do is left running.
func (p pace) inTime(what string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- guarded(do) }()
	timer := time.NewTimer(p.patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("%s has not returned after %v", what, p.patience)
	}
}
