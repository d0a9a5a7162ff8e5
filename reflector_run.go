package cache

import (
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

// run is one run of a reflector: a loop over its states. Each state returns the next one, after the pause before it.
type run struct {
	reflector *Reflector
	ctx       context.Context
	// applying is the context in which events are applied.
	applying applyContext
	// singleCycle is true for ListAndWatch: the run ends when its watch fails, or before another list.
	singleCycle bool
	// listed is true once this run has applied a list: resyncs begin then.
	listed bool
	// listIsNew is true from the end of a list to the request of a watch.
	listIsNew bool
	// resync fires, through resyncDue, when a resync is due. Both are nil without a period.
	resync    clock.Timer
	resyncDue <-chan time.Time
	retry     RetryWithDeadline
	// afterPause is true from the end of a pause to the next success. A first failure meanwhile may be answered at once.
	afterPause bool
	// refetchAt is when undecoded items are listed again, zero if there are none.
	refetchAt time.Time
	// watch is open or being opened, or nil.
	watch *openWatch
	// check is a running check of the source's version, or nil.
	check *versionCheck
	// regression is what a check has found after its watch, or nil.
	regression error
	// changes is the batch of events that are being applied.
	changes []change
	// relistWaiters are closed when the next list is in the store. While there are any, it is requested at "".
	relistWaiters []chan struct{}
	// result is the result of ListAndWatch.
	result error
	// panicking is true while the run panics.
	panicking bool
}

// applyGrace is how long after the end of its context a run applies events that it received before. Slow
// functions of the user must not delay its end.
const applyGrace = 10 * time.Millisecond

// applyContext is a context that ends applyGrace after its parent. Its goroutine runs only meanwhile.
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

// state is one of the states of a run.
type state int

const (
	stateEnd   state = iota
	stateList        // a list or a streaming list (list.go, watch_list.go)
	stateWatch       // watch.go
)

// Run is RunWithContext with a channel.
func (r *Reflector) Run(stopCh <-chan struct{}) {
	r.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext keeps the store equal to the source until ctx ends, then waits for a running call into the source.
// Failures are reported to the error handler and retried with backoff. It panics with a *PanicError if the source did.
// A concurrent second call returns and reports ErrAlreadyRan.
func (r *Reflector) RunWithContext(ctx context.Context) {
	if err := r.runStates(ctx, false); errors.Is(err, ErrAlreadyRan) {
		r.report(ctx, err)
	}
}

// ListAndWatch is ListAndWatchWithContext with a channel.
func (r *Reflector) ListAndWatch(stopCh <-chan struct{}) error {
	return r.ListAndWatchWithContext(wait.ContextForChannel(stopCh))
}

// ListAndWatchWithContext lists, then watches until ctx ends or another list is needed, and returns nil. It returns an
// error, and does not report it to the error handler, if a request failed or the reflector is running.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	return r.runStates(ctx, true)
}

func (r *Reflector) runStates(ctx context.Context, round bool) error {
	if r.running.Swap(true) {
		return fmt.Errorf("reflector %s: %w", r.name, ErrAlreadyRan)
	}
	defer r.running.Store(false)
	defer r.setPhase(PhaseStopped, 0)
	defer r.releaseMetrics()
	m := &run{reflector: r, singleCycle: round}
	m.begin(ctx)
	// In the reverse order: the watch first, since the check ends with it.
	stopShard := r.shard.Run(ctx, r.relist)
	defer stopShard()
	defer m.stopResync()
	defer m.applying.end()
	defer m.endCheck()
	returned := false
	defer func() { m.endWatch(returned) }()
	defer r.logger(m.ctx).V(3).Info("Stopped reflector")
	pprof.Do(m.ctx, pprof.Labels("reflector", r.name), m.loop)
	returned = true
	return m.result
}

// endWatch stops a watch that is still open: a state has panicked.
func (m *run) endWatch(returned bool) {
	if !returned {
		m.panicking = true
	}
	if m.watch != nil {
		m.stopWatch(m.watch)
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

func (m *run) stopResync() {
	if m.resync != nil {
		m.resync.Stop()
	}
}

// begin prepares a run. The caller has deferred releaseMetrics, in case the provider panics. It is no part of runStates,
// whose stack an idle informer keeps.
func (m *run) begin(ctx context.Context) {
	if provider := m.reflector.options.MetricsProvider; provider != nil {
		m.reflector.metrics = reflectorMetrics{
			lists:         provider.NewListsMetric(m.reflector.name),
			listDuration:  provider.NewListDurationMetric(m.reflector.name),
			itemsInList:   provider.NewItemsInListMetric(m.reflector.name),
			watches:       provider.NewWatchesMetric(m.reflector.name),
			short:         provider.NewShortWatchesMetric(m.reflector.name),
			watchDuration: provider.NewWatchDurationMetric(m.reflector.name),
			itemsInWatch:  provider.NewItemsInWatchMetric(m.reflector.name),
			version:       provider.NewLastResourceVersionMetric(m.reflector.name),
		}
		if previous := m.reflector.progress.version; previous != "" {
			setVersionGauge(m.reflector.metrics.version, previous)
		}
	}
	m.ctx = withLogger(ctx, m.reflector.options.Logger)
	m.adoptStoreVersion()
	m.applying = newApplyContext(m.ctx, m.reflector.clock)
	if m.reflector.WatchListPageSize < 0 {
		m.reflector.report(m.ctx, fmt.Errorf("Reflector.WatchListPageSize is negative (%d), treated as unset", m.reflector.WatchListPageSize))
	}
	m.retry = NewRetryWithDeadline(m.reflector.MaxInternalErrorRetryDuration, time.Minute, func(error) bool { return true }, m.reflector.clock)
	if m.reflector.options.ResyncPeriod > 0 {
		m.resync = m.reflector.clock.NewTimer(m.reflector.options.ResyncPeriod)
		m.resyncDue = m.resync.C()
	}
	m.reflector.logger(m.ctx).V(3).Info("Starting reflector", "resyncPeriod", m.reflector.options.ResyncPeriod)
}

// adoptStoreVersion makes the version of a store that another reflector has filled that of the first
// list: an older list would take its readers back in time, and is a regression.
func (m *run) adoptStoreVersion() {
	r := m.reflector
	store, isVersioned := r.store.(interface{ LastStoreSyncResourceVersion() string })
	if isVersioned && r.progress.version == "" && !r.proof.Load().accepted {
		r.progress.version = store.LastStoreSyncResourceVersion()
	}
}

// loop lists and watches until a state ends the run.
func (m *run) loop(context.Context) {
	for next := stateList; next != stateEnd; {
		switch {
		case m.ctx.Err() != nil:
			return
		case m.check != nil && !m.check.slow:
			// The watch of the check has ended. A slow check is reported and continues beside the next watch.
			if m.check.slow = m.reflector.reportSlow(m.ctx, "List", m.check.call); !m.check.slow {
				m.regression = m.evaluateCheck()
			}
		case m.regression != nil:
			next = m.fail(failedAttempt{activity: PhaseWatching, err: m.regression, began: m.reflector.clock.Now()})
		case next == stateWatch:
			next = m.watchState(nil)
		case m.mayStream():
			next = m.watchState(m.newListing(ListStreaming))
		default:
			next = m.listState()
		}
	}
}

// pauseAfterFailure waits before the state next, as the backoff and the limits of G13 require, and
// returns it, or the list that must precede it.
func (m *run) pauseAfterFailure(next state, f backoff.Failure) state {
	next = m.listBefore(next)
	f.List = next == stateList
	f.Requests = m.requestsOf(next, f.AtOnce)
	pause := m.reflector.progress.backoff.AfterFailure(m.reflector.clock.Now(), f)
	m.afterPause = pause > 0 || m.afterPause && f.Began.IsZero()
	return m.pauseFor(next, pause)
}

// pauseAfterWatch is pauseAfterFailure for a watch that worked or closed cleanly.
func (m *run) pauseAfterWatch(next state, ended backoff.Watch) state {
	next = m.listBefore(next)
	if next == stateEnd {
		return stateEnd
	}
	ended.List = next == stateList
	ended.Requests = m.requestsOf(next, false)
	pause := m.reflector.progress.backoff.AfterWatch(m.reflector.clock.Now(), ended)
	m.afterPause = pause > 0
	return m.pauseFor(next, pause)
}

// listBefore returns the list that must precede a watch, or next.
func (m *run) listBefore(next state) state {
	if next == stateWatch && startsWithState(m.reflector.progress.version) && !m.listIsNew {
		return m.listNext()
	}
	return next
}

// requestsOf returns how many requests belong to a state.
func (m *run) requestsOf(next state, atOnce bool) int {
	const watch, listAndWatch = 1, 2
	switch {
	case next == stateWatch:
		return watch
	case m.reflector.streams && m.streamIsDue() && !atOnce:
		return streamListWatch // room for a list if the stream fails again
	case m.mayStream():
		return watch
	}
	return listAndWatch
}

// pauseFor waits before the state next, and returns it.
func (m *run) pauseFor(next state, pause time.Duration) state {
	if pause <= 0 {
		return next
	}
	m.reflector.setPhase(PhasePaused, pause)
	timer := m.reflector.clock.NewTimer(pause)
	defer timer.Stop()
	waits := waitChannels{timer: timer.C()}
	if m.isPolled() { // no watch follows that would receive them
		waits.relistRequests = m.reflector.relistRequests
	}
	for m.wait(waits).reason == wakeDone { // a check that outlived its watch is reported at once
		m.regression = m.evaluateCheck()
	}
	return next
}

// waitChannels are the channels that a state waits for. A nil channel is ignored.
type waitChannels struct {
	// done is closed at the end of a call. By default it is that of the version check.
	done   <-chan struct{}
	timer  <-chan time.Time
	events <-chan watch.Event
	items  <-chan listedItem
	// relistRequests are requests for a list. The received channel is closed when the list is in the store.
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
	wakeError                     // the open watch must end: a resync failed, or a list was requested
)

// wakeup is the result of a wait, with the value that was received.
type wakeup struct {
	reason wakeReason
	event  watch.Event
	item   listedItem
	err    error
}

// wait waits for the first of w and the end of the context, and does resyncs that become due. A failed resync ends an open
// watch; without one it is only reported. A run waits nowhere else, except for calls of the source that outlive their context.
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
		case <-m.resyncDue:
			if err := m.resyncNow(); err != nil && w.events != nil {
				return wakeup{reason: wakeError, err: err}
			} else if err != nil {
				m.reflector.reportFailure(m.ctx, err)
			}
		}
	}
	return wakeup{reason: wakeContext, err: m.ctx.Err()}
}

// resyncNow resyncs the store, unless nothing is listed yet or ShouldResync returns false.
func (m *run) resyncNow() error {
	defer m.resync.Reset(m.reflector.options.ResyncPeriod)
	if !m.listed || m.reflector.ShouldResync != nil && !m.reflector.ShouldResync() {
		return nil
	}
	m.reflector.logger(m.ctx).V(4).Info("Resync")
	objects, other := splitObjectErrors(m.reflector.store.Resync())
	for _, bad := range objects {
		m.reflector.quarantineObject(m.ctx, bad)
	}
	if other != nil {
		return &StoreError{Op: "Resync", Err: other}
	}
	return nil
}

// An undecoded item of a list may have been damaged in transit, and a watch sends it only when it changes. So it is listed
// once more for each of its versions, at most once a minute. The watch continues until then.
const (
	refetchAfter    = 2 * time.Second
	refetchInterval = time.Minute
)

// errRefetch ends a watch because a list is due, by itself because of undecoded items.
var errRefetch = errors.New("another list is due")

// errListRequested ends a watch because a list was requested: Verify found differences, or this replica's share has changed.
var errListRequested = fmt.Errorf("the newest state was requested: %w", errRefetch)

// refetchLater schedules another list if the committed one has undecoded items that the list before it did not have at the
// same version. Items without metadata cannot be distinguished and count as one.
func (m *run) refetchLater() {
	refetch := &m.reflector.progress.refetch
	before := refetch.undecoded
	refetch.undecoded = map[string]string{}
	m.refetchAt = time.Time{}
	for _, q := range m.reflector.quarantine.list(m.undecodedLocked) {
		if q.ResourceVersion == "" {
			q.Key = ""
		}
		refetch.undecoded[q.Key] = q.ResourceVersion
		if known, again := before[q.Key]; !again || known != q.ResourceVersion {
			m.refetchAt = latest(m.reflector.clock.Now().Add(refetchAfter), refetch.last.Add(refetchInterval))
		}
	}
}

// undecodedLocked selects the objects that the reflector has quarantined because they could not be decoded.
func (m *run) undecodedLocked(at quarantineKey) bool {
	return at.part == m.reflector.quarantine && m.reflector.quarantine.entries[at].Stage == stageDecode
}

// relist makes the run end its watch, once one is open, and list at the newest version. It waits until the list is applied.
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
