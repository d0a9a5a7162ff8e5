// One run of a reflector: the loop over its states, the pauses between them, and the one select in
// which it waits. Which state comes next, and what may wake a state up?

package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/backoff"
)

// run is one run of a reflector, a state machine on one goroutine. Each state returns the next one,
// after the pause before it.
type run struct {
	reflector *Reflector
	// progress and clock are the reflector's.
	progress *progress
	clock    clock.Clock
	ctx      context.Context
	// applying is the context in which events are applied.
	applying applyContext
	// singleCycle is true for ListAndWatch: the run ends when its watch fails, or before another
	// list.
	singleCycle bool
	resync      resyncTimer
	retry       RetryWithDeadline
	// listIsNew is true from the end of a list to the request of a watch.
	listIsNew bool
	// afterPause is true from the end of a pause to the next success. A first failure meanwhile may
	// be answered at once.
	afterPause bool
	// watch is open or being opened, or nil.
	watch *openWatch
	// check is a running check of the source's version, or nil.
	check *versionCheck
	// regression is what a check has found after its watch, or nil.
	regression error
	// relistWaiters are closed when the next list is in the store. While there are any, it is
	// requested at "".
	relistWaiters []chan struct{}
	// result is the result of ListAndWatch.
	result error
	// hasReturned is true once the last state has returned, panicking while the run panics.
	hasReturned bool
	panicking   bool
}

func newRun(r *Reflector, singleCycle bool) *run {
	return &run{reflector: r, progress: &r.progress, clock: r.clock, singleCycle: singleCycle}
}

// state is one of the states of a run.
type state int

const (
	stateEnd   state = iota
	stateList        // a list or a streaming list (list.go, watch_list.go)
	stateWatch       // watch.go
	stateCheck       // a check of the version in place of a watch (version_check.go)
)

// Run is RunWithContext with a channel.
func (r *Reflector) Run(stopCh <-chan struct{}) {
	r.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext keeps the store equal to the source until ctx ends, then waits for a running call
// into the source. Failures are reported to the error handler and retried with backoff. It panics
// with a *PanicError if the source did. A concurrent second call returns and reports ErrAlreadyRan.
func (r *Reflector) RunWithContext(ctx context.Context) {
	err := r.runStates(ctx, false)
	if errors.Is(err, ErrAlreadyRan) {
		r.report(ctx, err)
	}
}

// ListAndWatch is ListAndWatchWithContext with a channel.
func (r *Reflector) ListAndWatch(stopCh <-chan struct{}) error {
	return r.ListAndWatchWithContext(wait.ContextForChannel(stopCh))
}

// ListAndWatchWithContext lists, then watches until ctx ends or another list is needed, and returns
// nil. A watch that was cut is resumed. It returns an error, and does not report it to the error
// handler, if a request failed or the reflector is running.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	return r.runStates(ctx, true)
}

func (r *Reflector) runStates(ctx context.Context, singleCycle bool) error {
	if r.running.Swap(true) {
		return fmt.Errorf("reflector %s: %w", r.name, ErrAlreadyRan)
	}
	defer r.running.Store(false)
	defer r.setPhase(PhaseStopped)
	defer r.releaseMetrics()
	m := newRun(r, singleCycle)
	m.begin(ctx)
	stopShard := r.shard.Run(ctx, r.relist)
	defer stopShard()
	defer m.end()
	pprof.Do(m.ctx, pprof.Labels("reflector", r.name), m.loop)
	m.hasReturned = true
	return m.result
}

// begin prepares a run. The caller has deferred releaseMetrics, in case the provider panics. It is
// no part of runStates, whose stack an idle informer keeps.
func (m *run) begin(ctx context.Context) {
	r := m.reflector
	m.ctx = withLogger(ctx, r.options.Logger)
	r.metrics = newReflectorMetrics(r.options.MetricsProvider, r.name)
	if m.progress.version != "" {
		setVersionGauge(r.metrics.version, m.progress.version)
	}
	m.adoptStoreVersion()
	m.applying = newApplyContext(m.ctx, m.clock)
	if r.WatchListPageSize < 0 {
		const format = "Reflector.WatchListPageSize is negative (%d), treated as unset"
		m.report(fmt.Errorf(format, r.WatchListPageSize))
	}
	isRetryable := func(error) bool { return true }
	m.retry = NewRetryWithDeadline(
		r.MaxInternalErrorRetryDuration, time.Minute, isRetryable, m.clock)
	m.resync.start(m.clock, r.options.ResyncPeriod)
	r.logger(m.ctx).V(3).Info("Starting reflector", "resyncPeriod", r.options.ResyncPeriod)
}

// adoptStoreVersion makes the version of a store that another reflector has filled that of the
// first list: an older list would take its readers back in time, and is a regression. Behind a
// queue it is the store of the consumer.
func (m *run) adoptStoreVersion() {
	isFirstRun := m.progress.version == "" && !m.reflector.proof.Load().accepted
	if !isFirstRun {
		return
	}
	queue := queueIn(m.reflector.store)
	if queue != nil {
		m.progress.version = queue.known.version()
		return
	}
	m.progress.version = storeVersionOf(m.reflector.store)
}

// end waits for all that the run has begun, the watch first, since the check ends with it. Each
// step is made even if one before it panics.
func (m *run) end() {
	defer m.resync.stop()
	defer m.applying.end()
	defer m.endCheck()
	m.reflector.logger(m.ctx).V(3).Info("Stopped reflector")
	if !m.hasReturned {
		m.panicking = true
	}
	if m.watch != nil { // a state has panicked
		m.watch.stop()
	}
}

// endCheck waits for a running check, whose context has ended.
func (m *run) endCheck() {
	if m.check == nil {
		return
	}
	if !m.check.slow {
		m.reflector.reportSlow(m.ctx, "List", m.check.call)
	}
	<-m.check.call.done
	_ = m.evaluateCheck()
}

// loop lists and watches until a state ends the run.
func (m *run) loop(context.Context) {
	next := stateList
	for next != stateEnd {
		m.awaitCheck()
		if m.ctx.Err() != nil {
			return
		}
		next = m.enter(next)
	}
}

// enter does the work of a state and returns the next one.
func (m *run) enter(entered state) state {
	if m.regression != nil {
		return m.fail(failedAttempt{
			activity: PhaseWatching,
			err:      m.regression,
			began:    m.clock.Now(),
		})
	}
	switch entered {
	case stateWatch:
		return m.watchState(nil)
	case stateCheck:
		return m.checkState()
	}
	if m.mayStream() {
		return m.watchState(m.newListing(ListStreaming))
	}
	return m.listState()
}

// report reports an error that is not a failure of the source.
func (m *run) report(err error) { m.reflector.report(m.ctx, err) }

// reportFailure is Reflector.reportFailure.
func (m *run) reportFailure(err error, retryAt time.Time) {
	m.reflector.reportFailure(m.ctx, err, retryAt)
}

// reportAndPause reports a failure of the source, waits for the next attempt, and returns its
// state. The time of the attempt is part of the report, and an error handler that is slow does not
// delay it.
func (m *run) reportAndPause(err error, next nextAttempt) state {
	m.reportFailure(err, next.at)
	return m.pauseUntil(next)
}

// nextAttempt is the next state of a run, and when it may begin.
type nextAttempt struct {
	state state
	at    time.Time
}

// attemptAfterFailure returns the next attempt after a failure, as the backoff and the limits of
// G13 require.
func (m *run) attemptAfterFailure(next state, f backoff.Failure) nextAttempt {
	next = m.listBefore(next)
	now := m.clock.Now()
	if next == stateEnd {
		return nextAttempt{state: stateEnd, at: now}
	}
	f.List = next == stateList
	f.Requests = cmp.Or(f.Requests, m.requestsOf(next, f.AtOnce))
	pause := m.progress.backoff.AfterFailure(now, f)
	m.afterPause = pause > 0 || m.afterPause && f.Began.IsZero()
	return nextAttempt{state: next, at: now.Add(pause)}
}

// attemptAfterWatch is attemptAfterFailure for a watch that worked or closed cleanly.
func (m *run) attemptAfterWatch(next state, ended backoff.Watch) nextAttempt {
	next = m.listBefore(next)
	now := m.clock.Now()
	if next == stateEnd {
		return nextAttempt{state: stateEnd, at: now}
	}
	ended.List = next == stateList
	ended.Requests = m.requestsOf(next, false)
	pause := m.progress.backoff.AfterWatch(now, ended)
	m.afterPause = pause > 0
	return nextAttempt{state: next, at: now.Add(pause)}
}

// listBefore returns the list that must precede a watch, or next.
func (m *run) listBefore(next state) state {
	if next == stateWatch && startsWithState(m.progress.version) && !m.listIsNew {
		return m.listNext("the store has no version")
	}
	return next
}

// listNext returns the state for another list that no failure has caused, and logs its reason. A
// single cycle ends before it. Lists after a failure are decided in fail.
func (m *run) listNext(reason string) state {
	if m.singleCycle {
		return stateEnd
	}
	m.reflector.logger(m.ctx).V(2).Info("Relisting", "reason", reason)
	return stateList
}

// requestsOf returns how many requests belong to a state.
func (m *run) requestsOf(next state, atOnce bool) int {
	const watch, listAndWatch = 1, 2
	if next != stateList {
		return watch // or a check
	}
	if m.reflector.streams && m.progress.streaming.isDue(m.clock.Now()) && !atOnce {
		return streamListWatch // room for a list if the stream fails again
	}
	if m.mayStream() {
		return watch
	}
	return listAndWatch
}

// pauseUntil waits for the next attempt, and returns its state.
func (m *run) pauseUntil(next nextAttempt) state { return m.pause(next, nil) }

// pauseUntilPoll is pauseUntil after a list that succeeded, where no watch follows that would
// receive requests for a list. A request ends the pause.
func (m *run) pauseUntilPoll(next nextAttempt) state {
	return m.pause(next, m.reflector.relistRequests)
}

func (m *run) pause(next nextAttempt, relistRequests <-chan chan struct{}) state {
	now := m.clock.Now()
	pause := next.at.Sub(now)
	if pause <= 0 {
		m.progress.backoff.EndedLate(next.at, now)
		return next.state
	}
	m.reflector.setPaused(next.at)
	timer := m.clock.NewTimer(pause)
	defer timer.Stop()
	waits := waitChannels{timer: timer.C(), relistRequests: relistRequests}
	for m.wait(waits).reason == wakeDone { // a check that outlived its watch is reported at once
		m.regression = m.evaluateCheck()
	}
	return next.state
}

// waitChannels are the channels that a state waits for. A nil channel is ignored.
type waitChannels struct {
	// done is closed at the end of a call. By default it is that of the version check.
	done   <-chan struct{}
	timer  <-chan time.Time
	events <-chan watch.Event
	items  <-chan listedItem
	// relistRequests are requests for a list. The received channel is closed when the list is in
	// the store.
	relistRequests <-chan chan struct{}
}

// wakeReason is why a wait ended.
type wakeReason int

const (
	wakeContext wakeReason = iota // the context has ended: err is its error
	wakeDone                      // done was closed
	wakeTimer                     // the timer has fired
	wakeEvent                     // the watch has sent an event
	wakeClosed                    // the watch has closed
	wakeItem                      // a list has sent an item
	wakeError                     // the open watch must end: a resync failed, a list was requested
)

// wakeup is the result of a wait, with the value that was received.
type wakeup struct {
	reason wakeReason
	event  watch.Event
	item   listedItem
	err    error
}

// wait waits for the first of w and the end of the context, and does resyncs that become due. A
// failed resync ends an open watch; without one it is only reported. A run waits nowhere else,
// except for calls of the source that outlive their context.
func (m *run) wait(w waitChannels) wakeup {
	if w.done == nil && m.check != nil {
		w.done = m.check.call.done
	}
	// Check the context first: select chooses at random between it and a busy watch.
	for m.ctx.Err() == nil {
		select {
		case <-m.ctx.Done():
		case <-w.done:
			return wakeup{reason: wakeDone}
		case <-w.timer:
			return wakeup{reason: wakeTimer}
		case event, open := <-w.events:
			if !open {
				return wakeup{reason: wakeClosed}
			}
			return wakeup{reason: wakeEvent, event: event}
		case item := <-w.items:
			return wakeup{reason: wakeItem, item: item}
		case listed := <-w.relistRequests:
			m.relistWaiters = append(m.relistWaiters, listed)
			return wakeup{reason: wakeError, err: errListRequested}
		case <-m.resync.due:
			err := m.resyncNow()
			if err == nil {
				continue
			}
			if w.events != nil {
				return wakeup{reason: wakeError, err: err}
			}
			m.reportFailure(err, time.Time{})
		}
	}
	return wakeup{reason: wakeContext, err: m.ctx.Err()}
}

// resyncTimer says when the store is resynced. Without a period it never does.
type resyncTimer struct {
	timer  clock.Timer
	due    <-chan time.Time
	period time.Duration
	// listed is true once the run has applied a list: resyncs begin then.
	listed bool
}

func (t *resyncTimer) start(c clock.Clock, period time.Duration) {
	if period > 0 {
		t.period = period
		t.timer = c.NewTimer(period)
		t.due = t.timer.C()
	}
}

func (t *resyncTimer) restart() { t.timer.Reset(t.period) }

func (t *resyncTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// resyncNow resyncs the store, unless nothing is listed yet or ShouldResync returns false.
func (m *run) resyncNow() error {
	defer m.resync.restart()
	r := m.reflector
	if !m.resync.listed || r.ShouldResync != nil && !r.ShouldResync() {
		return nil
	}
	r.logger(m.ctx).V(4).Info("Resync")
	objects, other := splitObjectErrors(r.store.Resync())
	for _, bad := range objects {
		r.quarantineObject(m.ctx, bad)
	}
	if other != nil {
		return &StoreError{Op: "Resync", Err: other}
	}
	return nil
}

var (
	// errRefetch ends a watch because a list is due: see refetch.
	errRefetch = errors.New("items could not be decoded")
	// errListRequested is an errRefetch because a list was requested: Verify found differences, or
	// this replica's share has changed.
	errListRequested = retitled{err: errRefetch, text: "the newest state was requested"}
)

// relist makes the run end its watch, once one is open, and list at the newest version. It waits
// until the list is applied.
func (r *Reflector) relist(ctx context.Context) error {
	listed := make(chan struct{})
	select {
	case r.relistRequests <- listed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-listed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// applyGrace is how long after the end of its context a run applies events that it received before.
// Slow functions of the user must not delay its end.
const applyGrace = 10 * time.Millisecond

// applyContext is a context that ends applyGrace after its parent. Its goroutine runs only
// meanwhile.
type applyContext struct {
	ctx    context.Context
	cancel context.CancelFunc
	// stop reports whether the goroutine was not started. Otherwise, ended is closed at its end.
	stop  func() bool
	ended chan struct{}
}

func newApplyContext(parent context.Context, c clock.Clock) applyContext {
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	ended := make(chan struct{})
	stop := context.AfterFunc(parent, func() {
		defer close(ended)
		defer cancel()
		timer := c.NewTimer(applyGrace)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-ctx.Done():
		}
	})
	return applyContext{ctx: ctx, cancel: cancel, stop: stop, ended: ended}
}

// end ends the context and waits for its goroutine. It must be called once.
func (a applyContext) end() {
	a.cancel()
	if !a.stop() {
		<-a.ended
	}
}
