package cachetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// This file is what the two suites share: how a check is run, in real or in
// virtual time, and how long it waits. A check is a function that returns an error,
// so that the suites can be run on sources and stores that are meant to fail.

// check is one subtest of a suite for things of type T. Its name is a sentence
// about what has been tested.
type check[T any] struct {
	name string
	// lacks says why the thing cannot be checked for this; empty: it can.
	lacks func(T) string
	run   func(T) error
	// decisive: if it fails, so would most others, which are not run.
	decisive bool
}

// pace is how long a check waits.
type pace struct {
	virtual bool
	// patience is for what must come, quiet for what must not.
	patience, quiet time.Duration
}

// In virtual time waiting costs nothing, so there it is long enough for a thing
// that retries after seconds. In real time patience is for a busy machine, and only
// a check that fails waits so long; quiet is waited for by those that pass.
func newPace(virtual bool, patience, quiet time.Duration) pace {
	p := pace{virtual: virtual, patience: 10 * time.Second, quiet: 50 * time.Millisecond}
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

// runChecks runs each check as a subtest on a thing of its own.
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

// runCheck runs one check on a new thing, in a bubble if time is to be virtual.
// lacking is why it was not run. The context that start is given ends with the
// check, before the cleanups of the test that start is given.
func runCheck[T any](t *testing.T, p pace, c check[T], start func(context.Context, testing.TB) T) (lacking string, err error) {
	t.Helper()
	run := func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		// A FailNow in start ends the goroutine: nothing was checked then.
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

// guarded makes an error of a panic, so that the other checks still run.
func guarded(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it panicked: %v", r)
		}
	}()
	return do()
}

// inTime runs do and returns its error, or one that says what would not end. It is
// for calls that might hang; one that does is left behind.
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
