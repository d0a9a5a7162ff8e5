package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
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

// An item of a list that could not be decoded may have been damaged on its way. The watch does
// not bring it again until it is next written, so it is fetched by one more list: after a pause
// of the backoff, within the limits of G13, while the watch goes on. Each version of an item has
// that once, and such lists are a minute apart: what is never decoded stays quarantined.

// refetchInterval is how far apart lists are that are made for undecoded items.
const refetchInterval = time.Minute

// undecodedItems are the versions of the items of a list that could not be decoded, by name.
// Those without a readable name cannot be told apart, and are one, without a name.
type undecodedItems map[string]string

// errRefetch ends a watch because undecoded items are to be listed once more.
var errRefetch = errors.New("items that could not be decoded are listed once more")

// refetchLater notes the undecoded items of a list that was committed, and when they are to be
// listed once more, if there are any that the list before did not have.
func (m *run) refetchLater(undecoded undecodedItems, listBegan time.Time) {
	m.stopRefetch()
	before := m.progress.undecoded
	m.progress.undecoded = undecoded
	for name, version := range undecoded {
		if known, again := before[name]; again && known == version {
			continue
		}
		if m.refetching == nil {
			m.refetching = undecodedItems{}
		}
		m.refetching[name] = version
	}
	if m.refetching == nil {
		return
	}
	now, requests := m.clock.Now(), m.requestsForState()
	if m.stream == nil {
		requests++ // the watch that is next
	}
	pause := m.progress.backoff.beside(now, failure{began: listBegan, requests: requests})
	if last := m.progress.refetched; !last.IsZero() {
		pause = max(pause, last.Add(refetchInterval).Sub(now))
	}
	m.refetch = m.clock.NewTimer(pause)
}

// refetchDue fires when undecoded items are to be listed once more.
func (m *run) refetchDue() <-chan time.Time {
	if m.refetch == nil {
		return nil
	}
	return m.refetch.C()
}

// refetchNow is errRefetch if they are to be listed now: unless the watch has brought all of
// them since. It is due again later if the limits of G13 leave no room, or if what the watch has
// sent ends that with an error, which it returns.
func (m *run) refetchNow(w *openWatch) error {
	if !m.isAnyUndecoded(m.refetching) {
		m.stopRefetch()
		return nil
	}
	now := m.clock.Now()
	if pause := m.progress.backoff.stretch(now, m.requestsForState()); pause > 0 {
		m.refetch.Reset(pause)
		return nil
	}
	klog.FromContext(m.ctx).V(2).Info("Listing once more for items that could not be decoded", "reflector", m.name, "type", m.typeDescription)
	m.progress.refetched = now
	m.stopRefetch()
	return errRefetch
}

// isAnyUndecoded says whether any of the items is still quarantined in the same version. Of one
// without a name nobody knows.
func (m *run) isAnyUndecoded(items undecodedItems) bool {
	for name, version := range items {
		if held, known := m.quarantine.version(name); name == "" || known && held == version {
			return true
		}
	}
	return false
}

func (m *run) stopRefetch() {
	if m.refetch != nil {
		m.refetch.Stop()
	}
	m.refetch, m.refetching = nil, nil
}

// A server that was restored from an older copy accepts a watch from a version that it has
// not reached yet, and is silent until it has. So after an outage, and when a watch is
// suspiciously silent, the source is asked for its present version: one list of one object,
// whose version is compared with the mirror's. The check is made beside the open watch, and
// not before it: then no restore falls between the two, and no retry waits for it.

const (
	// checkSettle is how long a watch must have been open before the check: one that is
	// cut at once costs no second request.
	checkSettle = time.Second
	// checkSpacing is the least time from one check to the next.
	checkSpacing = 20 * time.Second
	// checkPatience is how long a check may take.
	checkPatience = 30 * time.Second
	// checkTries is how often a check may fail in a row before it is given up, until the
	// next reason for one.
	checkTries = 3
	// checkRest is how long a source is not checked after an answer that cost it more
	// than one object, or had no version.
	checkRest = time.Hour
	// A watch of a source that sends bookmarks is checked once it has been silent for so
	// many silentTicks in a row. API servers send about one bookmark a minute.
	silentTick  = time.Minute
	silentTicks = 3
)

// checks is what a reflector knows about checks of its source's version.
type checks struct {
	// wanted is true from a watch that was refused or cut, or became silent, until a
	// check or a whole state has answered it.
	wanted bool
	// bookmarks is true once the source has sent one.
	bookmarks bool
	// last is when a check was begun, failures how many failed in a row.
	last     time.Time
	failures int
	// rest is when the source may be checked again.
	rest time.Time
}

// versionCheck is one check that is under way.
type versionCheck struct {
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{}
	// have is the mirror's version when it began.
	have string
	// overdue is true once it has been given up, left once nobody waits for it any more
	// but the end of the run.
	overdue, left bool
	// The rest is set when done is closed.

	// got is the source's version. whole is true if it sent more than one object.
	got      string
	whole    bool
	err      error
	panicked *PanicError
}

// mayCheck says whether the source's version means anything beside the mirror's, and may be
// asked for.
func (m *run) mayCheck() bool {
	_, err := resourceversion.CompareResourceVersion(m.progress.version, m.progress.version)
	return err == nil && !m.wholeLists && (m.lateCheck == nil || m.lateCheck.isDone()) && !m.clock.Now().Before(m.progress.checks.rest)
}

// checkAt says when a wanted check of an open watch is due: when the watch has settled, not
// soon after the last check, and where the limits of G13 leave room for it.
func (m *run) checkAt(w *openWatch) time.Time {
	now := m.clock.Now()
	due := w.answered.Add(min(checkSettle, (w.expires.Sub(w.asked)-watchGrace)/2))
	if spaced := m.progress.checks.last.Add(checkSpacing); due.Before(spaced) {
		due = spaced
	}
	if room := now.Add(m.progress.backoff.stretch(now, 1)); due.Before(room) {
		due = room
	}
	return due
}

// wake sets the watch's timer to when it must be looked at next, at its deadline at the
// latest.
func (m *run) wake(w *openWatch) {
	now := m.clock.Now()
	next := w.expires
	sooner := func(at time.Time) {
		if at.Before(next) {
			next = at
		}
	}
	switch {
	case w.check != nil && w.check.overdue: // it ends as soon as the source lets go of it
	case w.check != nil:
		sooner(w.check.began.Add(checkPatience))
	case !m.mayCheck():
	case m.progress.checks.wanted:
		sooner(m.checkAt(w))
	default:
		sooner(w.ticked.Add(silentTick))
	}
	w.timer.Reset(max(0, next.Sub(now)))
}

// look is called when the watch's timer fires. It is true if the deadline has passed.
func (m *run) look(w *openWatch) (overdue bool) {
	now := m.clock.Now()
	if !now.Before(w.expires) {
		return true
	}
	if now.Sub(w.ticked) >= silentTick {
		m.tick(w, now)
	}
	switch {
	case w.check != nil:
		if now.Sub(w.check.began) >= checkPatience {
			w.check.overdue = true
			w.check.cancel()
		}
	case m.progress.checks.wanted && m.mayCheck() && !now.Before(m.checkAt(w)):
		m.beginCheck(w, now)
	}
	m.wake(w)
	return false
}

// tick counts the minutes in which the watch has brought nothing.
func (m *run) tick(w *openWatch, now time.Time) {
	w.ticked = now
	if w.events != w.counted {
		w.counted, w.silent = w.events, 0
		return
	}
	if w.silent++; w.silent == silentTicks && m.progress.checks.bookmarks {
		m.progress.checks.wanted = true
	}
}

func (m *run) beginCheck(w *openWatch, now time.Time) {
	m.progress.checks.last = now
	m.progress.backoff.note(request{at: now})
	m.leaveCheck(false) // which is done, or mayCheck would not allow this
	ctx, cancel := context.WithCancel(m.ctx)
	c := &versionCheck{began: now, cancel: cancel, done: make(chan struct{}), have: m.progress.version}
	c.err = errSourceExited // until the call has returned
	w.check = c
	go func() {
		defer close(c.done)
		defer func() {
			if value := recover(); value != nil {
				c.panicked = &PanicError{Value: value, Stack: debug.Stack()}
			}
		}()
		c.got, c.whole, c.err = m.sourceVersion(ctx)
	}()
}

// takeCheck takes the result of the watch's check. The error, if any, ends the watch.
func (m *run) takeCheck(w *openWatch) error {
	c := w.check
	w.check = nil
	c.cancel()
	if c.panicked != nil {
		panic(c.panicked)
	}
	state := &m.progress.checks
	if c.err != nil {
		m.checkFailed(c)
		m.wake(w)
		return nil
	}
	state.wanted, state.failures = false, 0
	if c.whole || c.got == "" {
		state.rest = m.clock.Now().Add(checkRest)
	}
	if versionBefore(c.got, c.have) {
		return &RegressionError{What: "list", Have: c.have, Got: c.got}
	}
	m.wake(w)
	return nil
}

// checkFailed reports a check that failed. The watch goes on: as far as it says, there is
// nothing wrong.
func (m *run) checkFailed(c *versionCheck) {
	if m.ctx.Err() != nil {
		return
	}
	if c.overdue {
		c.err = fmt.Errorf("not answered within %s: %w", checkPatience, c.err)
	}
	state := &m.progress.checks
	m.progress.backoff.fails(m.clock.Now(), failure{began: c.began})
	if state.failures++; state.failures >= checkTries {
		state.wanted, state.failures = false, 0
	}
	m.tell(m.ctx, fmt.Errorf("checking the version of %s: %w", m.typeDescription, c.err))
}

// endCheck ends a check that the watch's end has overtaken. What it has found by then is not
// lost: a failure is reported, anything else is asked again.
func (m *run) endCheck(w *openWatch, panicking bool) {
	c := w.check
	if c == nil {
		return
	}
	w.check = nil
	c.cancel()
	if panicking || !c.isDone() {
		// The next watch may be as short: it is not kept waiting by this check.
		m.lateCheck, m.progress.checks.last = c, time.Time{}
		return
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	if c.err != nil {
		m.checkFailed(c)
	}
}

func (c *versionCheck) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// awaitCheck waits for a check that was ended before the source is called again, but not for
// ever for a source that ignores its context: the mirror would be behind for as long.
func (m *run) awaitCheck() {
	c := m.lateCheck
	if c == nil || c.left {
		return
	}
	timer := m.clock.NewTimer(slowSource)
	defer timer.Stop()
	select {
	case <-c.done:
		m.leaveCheck(false)
	case <-m.ctx.Done():
	case <-timer.C():
		c.left = true
		m.tell(m.ctx, &SlowSourceError{Op: "List", Waited: slowSource})
	}
}

// leaveCheck waits for a check that was ended, at the end of a run however long it takes. While
// the run panics, a panic of the check is logged: the first one is to come out of Run.
func (m *run) leaveCheck(panicking bool) {
	c := m.lateCheck
	if c == nil {
		return
	}
	m.lateCheck = nil
	if c.left {
		<-c.done
	} else {
		m.awaitSlow("List", c.done)
	}
	switch {
	case c.panicked != nil && panicking:
		klog.FromContext(m.ctx).Error(c.panicked, "Check of the source's version panicked as well", "reflector", m.name, "type", m.typeDescription)
	case c.panicked != nil:
		panic(c.panicked)
	}
}

// errOneIsEnough ends a list whose version is all that is wanted of it.
var errOneIsEnough = errors.New("one object is enough")

// sourceVersion asks the source for its present version, by a list of one object. whole is
// true if it sent more.
func (m *run) sourceVersion(ctx context.Context) (version string, whole bool, err error) {
	options := metav1.ListOptions{Limit: 1}
	if m.itemLister != nil {
		return itemsVersion(ctx, m.itemLister, options)
	}
	list, err := m.source.ListWithContext(ctx, options)
	switch {
	case err != nil:
		return "", false, err
	case isNilPointer(list):
		return "", false, ErrNilList
	case isTable(list):
		return "", false, ErrTableList
	}
	if !meta.IsListType(list) {
		return "", false, fmt.Errorf("answer %T is not a list", list)
	}
	if version, _, err = listMetadata(list); err != nil {
		return "", false, fmt.Errorf("answer %T is not a list: %w", list, err)
	}
	return version, meta.LenList(list) > 1, nil
}

// itemsVersion is sourceVersion of a source that lists item by item: it is not read further
// than its second one.
func itemsVersion(ctx context.Context, source ItemLister, options metav1.ListOptions) (version string, whole bool, err error) {
	var mu sync.Mutex // against a source that does not keep to one call at a time
	items := 0
	about, err := source.ListItems(ctx, options, func(list metav1.ListMeta, _ runtime.Object) error {
		mu.Lock()
		defer mu.Unlock()
		version = list.ResourceVersion
		if items++; items > 1 {
			return errOneIsEnough
		}
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	if items > 1 {
		return version, true, nil
	}
	if err != nil {
		return "", false, err
	}
	return about.ResourceVersion, false, nil
}
