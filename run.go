package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// run is one run of a reflector: a state machine whose states are functions that
// return the next. There are four: list (list.go), stream (watchlist.go), watch
// (watch.go) and pause. Whatever a state waits for, it waits in the one select
// of next, where the context and the resync timer are heard too.
type run struct {
	*Reflector
	ctx context.Context
	// round is true for ListAndWatch: the run ends where a list would begin
	// again, or the watch failed.
	round bool
	// listed is true once this run has a first state: there is nothing to
	// resync before.
	listed bool
	resync clock.Timer
	// stream is the watch that a streaming list has left open.
	stream *openWatch
	// result is what ListAndWatch returns.
	result error
}

// state does something and returns what comes next; nil ends the run.
type state func(*run) state

// Run is RunWithContext with a stop channel.
func (r *Reflector) Run(stopCh <-chan struct{}) {
	r.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext makes the store equal to the source, and keeps it so until ctx
// ends: then it returns at once, except that it waits for a call into the source
// that is under way. Failures are answered by pausing and trying again; each is
// reported to the error handler. A panic of the source comes out of it, as a
// *PanicError.
//
// A concurrent second call returns at once and reports ErrAlreadyRan. After it
// has returned the reflector may be run again.
func (r *Reflector) RunWithContext(ctx context.Context) {
	if err := r.runStates(ctx, false); errors.Is(err, ErrAlreadyRan) {
		r.tell(ctx, err)
	}
}

// ListAndWatch is ListAndWatchWithContext with a stop channel.
func (r *Reflector) ListAndWatch(stopCh <-chan struct{}) error {
	return r.ListAndWatchWithContext(wait.ContextForChannel(stopCh))
}

// ListAndWatchWithContext is one round: it lists, then watches, across watches
// that end as watches do, until the context ends, a watch fails so that a list
// would be next, or a resync fails; then it returns nil, and the version is kept
// for the next round. It returns an error if the list, or the request for a
// watch, failed; that error is not reported to the error handler as well.
// ErrAlreadyRan if the reflector is running.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	return r.runStates(ctx, true)
}

func (r *Reflector) runStates(ctx context.Context, round bool) error {
	if !r.start() {
		return fmt.Errorf("reflector %s: %w", r.name, ErrAlreadyRan)
	}
	defer r.stop()
	if r.logger != nil {
		ctx = klog.NewContext(ctx, *r.logger)
	}
	if r.WatchListPageSize < 0 {
		r.tell(ctx, fmt.Errorf("Reflector.WatchListPageSize is negative (%d), taken as unset", r.WatchListPageSize))
	}
	r.progress.retry = NewRetryWithDeadline(r.MaxInternalErrorRetryDuration, time.Minute,
		func(err error) bool { return err != nil && CauseOf(err) == CauseInternal }, r.clock)

	m := &run{Reflector: r, ctx: ctx, round: round}
	if r.resyncPeriod > 0 {
		m.resync = r.clock.NewTimer(r.resyncPeriod)
		defer m.resync.Stop()
	}
	defer m.dropStream()

	logger := klog.FromContext(ctx)
	logger.V(3).Info("Starting reflector", "reflector", r.name, "type", r.typeDescription, "resyncPeriod", r.resyncPeriod)
	defer logger.V(3).Info("Stopped reflector", "reflector", r.name, "type", r.typeDescription)
	for s := m.firstState(); s != nil && ctx.Err() == nil; {
		s = s(m)
	}
	return m.result
}

func (r *Reflector) start() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		return false
	}
	r.running = true
	return true
}

func (r *Reflector) stop() {
	now := r.clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = false
	r.report.phase, r.report.since = PhaseStopped, now
}

// firstState is how to get a whole state: by a stream or a list.
func (m *run) firstState() state {
	if m.mayStream() {
		return (*run).streamState
	}
	return (*run).listState
}

// end is what stopped a wait.
type end int

const (
	endContext end = iota // the context has ended
	endDone               // what was waited for is done
	endTimer              // the timer has fired
	endEvent              // the watch has sent something
	endClosed             // the watch has closed
	endResync             // a resync has failed
)

// waiting is what a state waits for; a nil channel never comes.
type waiting struct {
	done   <-chan struct{}
	timer  <-chan time.Time
	events <-chan watch.Event
}

// next waits for the first of w, the context and a failed resync. A run waits
// nowhere else, but for a call into the source that outlives its context, and for
// the consumer where a first list is ahead of it.
func (m *run) next(w waiting) (watch.Event, end, error) {
	for {
		// A busy watch must not hide the end of the context: select is fair,
		// and fair is half of the time too late.
		if m.ctx.Err() != nil {
			return watch.Event{}, endContext, nil
		}
		select {
		case <-m.ctx.Done():
			return watch.Event{}, endContext, nil
		case <-w.done:
			return watch.Event{}, endDone, nil
		case <-w.timer:
			return watch.Event{}, endTimer, nil
		case event, open := <-w.events:
			if !open {
				return event, endClosed, nil
			}
			return event, endEvent, nil
		case <-m.resyncDue():
			if err := m.resyncNow(); err != nil {
				return watch.Event{}, endResync, err
			}
		}
	}
}

func (m *run) resyncDue() <-chan time.Time {
	if m.resync == nil {
		return nil
	}
	return m.resync.C()
}

// resyncNow resyncs the store, if it has anything yet and ShouldResync agrees.
func (m *run) resyncNow() error {
	defer m.resync.Reset(m.resyncPeriod)
	if !m.listed || m.ShouldResync != nil && !m.ShouldResync() {
		return nil
	}
	klog.FromContext(m.ctx).V(4).Info("Resync", "reflector", m.name)
	if err := m.store.Resync(); err != nil {
		return &StoreError{Op: "Resync", Err: err}
	}
	return nil
}

// slowSource is how long a call into the source may outlive its context before
// that is reported.
const slowSource = 30 * time.Second

// asked is what became of a call into the source.
type asked[T any] struct {
	value T
	err   error
	// ended is true if the context ended first, late if the limit came first.
	ended, late bool
}

// ask calls the source on a goroutine of its own, so that the run can hear the
// context, the resync timer and limit meanwhile; it waits for the call whatever
// happens. The call's context ends with the run's, and at the limit. A panic of
// the call comes out of ask.
func ask[T any](m *run, op string, limit <-chan time.Time, call func(ctx context.Context) (T, error)) asked[T] {
	ctx, cancel := context.WithCancel(m.ctx)
	defer cancel()
	return askWithin(m, ctx, cancel, op, limit, call)
}

// askWithin is ask with a context of the caller's, which stays alive afterwards.
func askWithin[T any](m *run, ctx context.Context, cancel context.CancelFunc, op string,
	limit <-chan time.Time, call func(ctx context.Context) (T, error)) asked[T] {
	var answer asked[T]
	var panicked *PanicError
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
	ended, late := m.awaitCall(op, done, limit, cancel)
	if panicked != nil {
		panic(panicked)
	}
	answer.ended, answer.late = ended, late
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

// awaitCall waits until done. When the context ends, or limit comes, it cancels
// the call and reports it if it still runs after a while.
func (m *run) awaitCall(op string, done <-chan struct{}, limit <-chan time.Time, cancel context.CancelFunc) (ended, late bool) {
	for {
		_, end, err := m.next(waiting{done: done, timer: limit})
		switch end {
		case endDone:
			return false, false
		case endResync:
			m.failed(m.ctx, err)
			continue
		}
		cancel()
		m.awaitSlow(op, done)
		return end == endContext, end == endTimer
	}
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

// sleep pauses for d and goes on with s.
func (m *run) sleep(d time.Duration, s state) state {
	if d <= 0 {
		return s
	}
	m.setPhase(PhasePaused)
	timer := m.clock.NewTimer(d)
	defer timer.Stop()
	for {
		switch _, end, err := m.next(waiting{timer: timer.C()}); end {
		case endTimer:
			return s
		case endResync:
			m.failed(m.ctx, err)
		default:
			return nil
		}
	}
}

// pause sleeps as the backoff says after a failure, then goes on with s.
func (m *run) pause(f failure, s state) state {
	return m.sleep(m.progress.backoff.pause(m.clock.Now(), f), s)
}
