package cache

import (
	"context"
	"runtime/debug"
	"time"
)

// A call into the source, on a goroutine of its own: so the run hears the context,
// the resync timer and what the call brings meanwhile. The run waits for the call
// whatever happens.

// slowSource is how long a call into the source may outlive its context before
// that is reported.
const slowSource = 30 * time.Second

// sourceCall is what a run listens to while a call is under way.
type sourceCall struct {
	// op names the call in a report.
	op string
	// limit, if it comes, ends the call.
	limit <-chan time.Time
	// batches are the items that the call brings, if it brings them one by one;
	// take takes them on the run's goroutine. Its error ends the call.
	batches <-chan itemBatch
	take    func(itemBatch) error
}

// asked is what became of a call into the source.
type asked[T any] struct {
	value T
	err   error
	// ended is true if the context ended first, late if the limit came first.
	ended, late bool
	// refused is the error of sourceCall.take, for which the call was ended. What
	// the call itself returned then says nothing of the source.
	refused error
}

// ask calls the source. The call's context ends with the run's, at the limit, and
// with an error of take. A panic of the call comes out of ask.
func ask[T any](m *run, c sourceCall, call func(ctx context.Context) (T, error)) asked[T] {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	return askWithin(m, ctx, cancel, c, call)
}

// askWithin is ask with a context of the caller's, which stays alive afterwards.
func askWithin[T any](m *run, ctx context.Context, cancel context.CancelFunc, c sourceCall,
	call func(ctx context.Context) (T, error)) asked[T] {
	var answer asked[T]
	var panicked *PanicError
	answer.err = errSourceExited // until the call has returned
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				panicked = &PanicError{Value: value, Stack: debug.Stack()}
			}
		}()
		answer.value, answer.err = call(ctx)
	}()
	// A panic on this goroutine, of the store or the error handler, must not
	// leave the call behind.
	defer cancelUnlessDone(done, cancel)
	woke := m.awaitCall(c, done, cancel)
	if panicked != nil {
		panic(panicked)
	}
	answer.ended, answer.late, answer.refused = woke.end == endContext, woke.end == endTimer, woke.err
	return answer
}

// cancelUnlessDone cancels a call that still runs, and waits for it.
func cancelUnlessDone(done <-chan struct{}, cancel context.CancelFunc) {
	select {
	case <-done:
	default:
		cancel()
		<-done
	}
}

// awaitCall waits until done, and takes what the call brings. When the context ends,
// the limit comes or a batch is refused, it cancels the call, waits for it, and
// reports it if it still runs after a while. It returns what ended the call; of
// endBatch, the error is that of take.
func (m *run) awaitCall(c sourceCall, done <-chan struct{}, cancel context.CancelFunc) woken {
	for {
		woke := m.next(waiting{done: done, timer: c.limit, batches: c.batches})
		switch woke.end {
		case endDone:
			return woke
		case endBatch:
			if woke.err = c.take(woke.batch); woke.err == nil {
				continue
			}
		}
		cancel()
		m.awaitSlow(c.op, done)
		return woke
	}
}

// apart calls f on a goroutine of its own, for which the caller waits: done is closed at its end, and panicked says
// then whether it has panicked.
func apart(f func()) (done chan struct{}, panicked **PanicError) {
	done, panicked = make(chan struct{}), new(*PanicError)
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				*panicked = &PanicError{Value: value, Stack: debug.Stack()}
			}
		}()
		f()
	}()
	return done, panicked
}

func (m *run) awaitSlow(op string, done <-chan struct{}) {
	timer := m.clock.NewTimer(slowSource)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C():
		m.tell(m.ctx, &SlowSourceError{Op: op, Waited: slowSource})
		<-done
	}
}
