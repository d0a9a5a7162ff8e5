// Calls of the source, each on a goroutine of its own. How long is one waited for after its context
// has ended?

package cache

import (
	"context"
	"time"
)

// slowSource is how long a call of the source may continue after its context has ended before it is
// reported.
const slowSource = 30 * time.Second

// callSource calls the source on another goroutine, and accept with each item of waits. If accept
// fails, the context ends, or the timer of waits fires, it cancels the call. It always waits until
// the call has returned. The error is that of the call, of accept, of the context, or
// errWatchOverdue for the timer. It panics if the call does.
func (m *run) callSource(
	op string, cancel context.CancelFunc,
	waits waitChannels, accept func(listedItem) error, call func() error,
) (ended wakeReason, err error) {
	callErr := errSourceExited // until the call has returned
	running := callAsync(func() { callErr = call() })
	isDone := false
	defer func() {
		if !isDone { // also after a panic of the store or the error handler
			cancel()
			<-running.done
		}
	}()

	waits.done = running.done
	woke := m.acceptItems(waits, accept)
	isDone = woke.reason == wakeDone
	if !isDone {
		cancel()
	}
	m.await(op, running)
	switch woke.reason {
	case wakeDone:
		return wakeDone, callErr
	case wakeTimer:
		return wakeTimer, errWatchOverdue
	}
	return woke.reason, woke.err
}

// acceptItems calls accept with each item. It returns what else happens first, or the item for
// which accept failed.
func (m *run) acceptItems(waits waitChannels, accept func(listedItem) error) wakeup {
	for {
		woke := m.wait(waits)
		if woke.reason != wakeItem {
			return woke
		}
		woke.err = accept(woke.item)
		if woke.err != nil {
			return woke
		}
	}
}

// asyncCall is a call on another goroutine.
type asyncCall struct {
	done     chan struct{}
	panicked *PanicError // set before done is closed
}

// callAsync starts a call of f. The caller must wait for it.
func callAsync(f func()) *asyncCall {
	c := &asyncCall{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer c.recoverPanic()
		f()
	}()
	return c
}

// recoverPanic records a panic of the call. It must be deferred.
func (c *asyncCall) recoverPanic() {
	if value := recover(); value != nil {
		c.panicked = panicError(value).(*PanicError)
	}
}

// reportSlow waits for a call whose context has ended, for at most 30 s. If the call continues, it
// reports it and returns true. The caller must wait for the call.
func (r *Reflector) reportSlow(ctx context.Context, op string, c *asyncCall) bool {
	if r.awaitForSlowSource(c) {
		return false
	}
	isReported := false
	defer func() {
		if !isReported { // the error handler has panicked, so the caller will not wait
			<-c.done
		}
	}()
	r.report(ctx, &SlowSourceError{Op: op, Waited: slowSource})
	isReported = true
	return true
}

// awaitForSlowSource waits for a call for at most slowSource, and reports whether it is done.
func (r *Reflector) awaitForSlowSource(c *asyncCall) bool {
	if isClosed(c.done) { // as nearly always: it needs no timer
		return true
	}
	timer := r.clock.NewTimer(slowSource)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	case <-timer.C():
		return false
	}
}

// await waits for a call whose context has ended, or that is done, and reports it after 30 s. It
// panics if the call has panicked. If the run panics already, it logs the second panic.
func (m *run) await(op string, c *asyncCall) {
	m.reflector.reportSlow(m.ctx, op, c)
	<-c.done
	if c.panicked == nil {
		return
	}
	if m.panicking {
		m.reflector.logger(m.ctx).Error(c.panicked, "Source panicked", "call", op)
		return
	}
	m.panicking = true
	panic(c.panicked)
}
