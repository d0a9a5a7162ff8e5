package cache

import (
	"context"
	"time"
)

// slowSource is how long a call of the source may continue after its context has ended before it is reported.
const slowSource = 30 * time.Second

// callSource calls the source on another goroutine, and accept with each item of waits. If accept fails, the context ends, or
// the timer of waits fires, it cancels the call. It always waits until the call has returned. The error is that of the call,
// of accept, of the context, or errWatchOverdue for the timer. It panics if the call does.
func (m *run) callSource(
	op string, cancel context.CancelFunc, waits waitChannels, accept func(listedItem) error, call func() error,
) (ended wakeReason, err error) {
	callErr := errSourceExited // until the call has returned
	running := callAsync(func() { callErr = call() })
	defer func() {
		if ended != wakeDone { // also after a panic of the store or the error handler
			cancel()
			<-running.done
		}
	}()
	waits.done = running.done
	for err == nil {
		woke := m.wait(waits)
		ended = woke.reason
		if ended != wakeItem {
			err = woke.err
			break
		}
		err = accept(woke.item)
	}
	if ended != wakeDone {
		cancel()
	}
	m.await(op, running)
	switch ended {
	case wakeDone:
		return ended, callErr
	case wakeTimer:
		return ended, errWatchOverdue
	}
	return ended, err
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
		defer func() {
			if value := recover(); value != nil {
				c.panicked = panicError(value).(*PanicError)
			}
		}()
		f()
	}()
	return c
}

// reportSlow waits for a call whose context has ended, for at most 30 s, and reports it if it continues.
func (r *Reflector) reportSlow(ctx context.Context, op string, c *asyncCall) (slow bool) {
	if isClosed(c.done) { // as nearly always: it needs no timer
		return false
	}
	timer := r.clock.NewTimer(slowSource)
	defer timer.Stop()
	select {
	case <-c.done:
		return false
	case <-timer.C():
		defer func() {
			if !slow { // the error handler has panicked
				<-c.done
			}
		}()
		r.report(ctx, &SlowSourceError{Op: op, Waited: slowSource})
		return true
	}
}

// await waits for a call whose context has ended, or that is done, and reports it after 30 s. It panics if the call has
// panicked. If the run panics already, it logs the second panic.
func (m *run) await(op string, c *asyncCall) {
	m.reflector.reportSlow(m.ctx, op, c)
	<-c.done
	switch {
	case c.panicked == nil:
	case m.panicking:
		m.reflector.logger(m.ctx).Error(c.panicked, "Source panicked", "call", op)
	default:
		m.panicking = true
		panic(c.panicked)
	}
}
