package cache

import (
	"context"
	"errors"
	"fmt"
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
	// refetch, if not nil, fires when refetching are to be listed once more.
	refetch    clock.Timer
	refetching undecodedItems
	// stream is the watch that a streaming list has left open.
	stream *openWatch
	// lateCheck is a check of the source's version that has outlived its context and its
	// watch, or nil.
	lateCheck *versionCheck
	// steppedBack is true if the state that is coming is older than the last one. stepBack is
	// its report, until that has been made.
	steppedBack bool
	stepBack    *RegressionError
	// batch are the events that are being applied, changes what becomes of them.
	batch   []watch.Event
	changes []change
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
// would be next, undecoded items are due to be listed once more, or a resync
// fails; then it returns nil, and the version is kept for the next round. It
// returns an error if the list, or the request for a watch, failed; that error
// is not reported to the error handler as well.
// ErrAlreadyRan if the reflector is running.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	return r.runStates(ctx, true)
}

func (r *Reflector) runStates(ctx context.Context, round bool) error {
	if !r.start() {
		return fmt.Errorf("reflector %s: %w", r.name, ErrAlreadyRan)
	}
	defer r.stop()
	defer r.releaseMeters()
	r.beginMeters()
	if r.logger != nil {
		ctx = klog.NewContext(ctx, *r.logger)
	}
	if r.WatchListPageSize < 0 {
		r.tell(ctx, fmt.Errorf("Reflector.WatchListPageSize is negative (%d), taken as unset", r.WatchListPageSize))
	}
	r.progress.rested = false
	r.progress.retry = NewRetryWithDeadline(r.MaxInternalErrorRetryDuration, time.Minute,
		func(err error) bool { return err != nil && CauseOf(err) == CauseInternal }, r.clock)

	m := &run{Reflector: r, ctx: ctx, round: round}
	if r.resyncPeriod > 0 {
		m.resync = r.clock.NewTimer(r.resyncPeriod)
		defer m.resync.Stop()
	}
	panicking := true
	defer func() { m.leaveCheck(panicking) }()
	defer m.stopRefetch()
	defer func() { m.dropStream(panicking) }()

	logger := klog.FromContext(ctx)
	logger.V(3).Info("Starting reflector", "reflector", r.name, "type", r.typeDescription, "resyncPeriod", r.resyncPeriod)
	defer logger.V(3).Info("Stopped reflector", "reflector", r.name, "type", r.typeDescription)
	for s := m.firstState(); s != nil && ctx.Err() == nil; {
		s = s(m)
	}
	panicking = false
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
	endBatch              // a list has brought some items
	endFlood              // the watch has sent several events
	endQuiet              // for some time it has sent nothing
	endResync             // a resync has failed
	endRefetch            // undecoded items are to be listed once more
)

// waiting is what a state waits for; a nil channel never comes.
type waiting struct {
	done    <-chan struct{}
	timer   <-chan time.Time
	events  <-chan watch.Event
	batches <-chan itemBatch
	refetch <-chan time.Time
}

// woken is how a wait ended, with what came of it.
type woken struct {
	end   end
	event watch.Event // of endEvent
	batch itemBatch   // of endBatch
	err   error       // of endResync
}

// next waits for the first of w, the context and a failed resync. A run waits
// nowhere else, but for a call into the source that outlives its context, and for
// the consumer where a first list is ahead of it.
func (m *run) next(w waiting) woken {
	for {
		// A busy watch must not hide the end of the context: select is fair,
		// and fair is half of the time too late.
		if m.ctx.Err() != nil {
			return woken{end: endContext}
		}
		select {
		case <-m.ctx.Done():
			return woken{end: endContext}
		case <-w.done:
			return woken{end: endDone}
		case <-w.timer:
			return woken{end: endTimer}
		case event, open := <-w.events:
			if !open {
				return woken{end: endClosed}
			}
			return woken{end: endEvent, event: event}
		case batch := <-w.batches:
			return woken{end: endBatch, batch: batch}
		case <-w.refetch:
			return woken{end: endRefetch}
		case <-m.resyncDue():
			if err := m.resyncNow(); err != nil {
				return woken{end: endResync, err: err}
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
	objects, other := splitObjectErrors(m.store.Resync())
	for _, bad := range objects {
		m.quarantined(m.ctx, bad, heldIn(m.store, bad))
	}
	if other != nil {
		return &StoreError{Op: "Resync", Err: other}
	}
	return nil
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
		switch woke := m.next(waiting{timer: timer.C()}); woke.end {
		case endTimer:
			return s
		case endResync:
			m.failed(m.ctx, woke.err)
		default:
			return nil
		}
	}
}

// pause sleeps as the backoff says after a failure, then goes on with s.
func (m *run) pause(f failure, s state) state {
	m.progress.rested = true
	return m.sleep(m.progress.backoff.pause(m.clock.Now(), f), s)
}

// spaced goes on with s without a pause, but as far apart as the limits of G13 ask for
// where so many requests follow, and as the source has asked for.
func (m *run) spaced(requests int, retryAfter time.Duration, s state) state {
	return m.sleep(m.progress.backoff.space(m.clock.Now(), requests, retryAfter), s)
}

// pauseForState pauses before getting a whole state.
func (m *run) pauseForState(f failure) state {
	if f.requests = m.requestsForState(); m.streamIsDue() {
		// A stream that has failed before is tried again, where the limits leave room for
		// what follows another failure: the pause makes it.
		f.requests = streamListWatch
	}
	return m.pause(f, stateAgain)
}

// stateAfterNews gets a whole state because the source does not know the version that it
// was asked for. If that is how it answered the first request after a pause, the pause
// has been had: a mirror whose version was forgotten while the source was away would
// otherwise be behind for two of them. The limits of G13 hold all the same.
func (m *run) stateAfterNews(f failure) state {
	now := m.clock.Now()
	if !m.progress.rested {
		return m.pauseForState(f)
	}
	m.progress.rested = false
	m.progress.backoff.fails(now, f)
	return m.spaced(m.requestsForState(), f.retryAfter, stateAgain)
}

// requestsForState is how many requests the next whole state makes: a list is followed
// by a watch, a stream is its own.
func (m *run) requestsForState() int {
	if m.mayStream() {
		return 1
	}
	return 2
}

// stateAgain decides after the pause, and not before, how to get a whole state.
func stateAgain(m *run) state { return m.firstState() }
