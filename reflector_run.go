package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// run is one run of a reflector: a loop over its states. Each state returns the next one, after any pause before it.
type run struct {
	*Reflector
	ctx context.Context
	// round is true for ListAndWatch: the run ends where a list would begin again, or the watch failed.
	round bool
	// listed is true once this run has a first state: before that there is nothing to resync.
	listed bool
	resync clock.Timer
	retry  RetryWithDeadline
	// rested is true from the end of a pause to the next state that is accepted, or to the
	// failure that is answered at once because of it.
	rested bool
	// refetchAt is when undecoded items are to be listed once more, zero if there are none.
	refetchAt time.Time
	// watch is the one that is open or being opened, or nil.
	watch *openWatch
	// check is a check of the source's version that is under way, or nil. older is what one has found during a pause.
	check *versionCheck
	older error
	// batch are the events that are being applied, changes their changes.
	batch   []watch.Event
	changes []change
	// relisted are closed when the store has the next whole state, which must be the newest.
	relisted []chan struct{}
	// result is what ListAndWatch returns.
	result error
	// panicking is true while a panic comes out of the run.
	panicking bool
}

// state is one of the states of a run.
type state int

const (
	stateEnd   state = iota
	stateWhole       // a list or a streaming list (list.go, watch_list.go)
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
	defer r.releaseMeters()
	r.beginMeters()
	defer r.shard.Run(ctx, r.relist)()
	if r.options.Logger != nil {
		ctx = klog.NewContext(ctx, *r.options.Logger)
	}
	if r.WatchListPageSize < 0 {
		r.report(ctx, fmt.Errorf("Reflector.WatchListPageSize is negative (%d), treated as unset", r.WatchListPageSize))
	}
	m := &run{Reflector: r, ctx: ctx, round: round}
	m.retry = NewRetryWithDeadline(r.MaxInternalErrorRetryDuration, time.Minute, func(error) bool { return true }, r.clock)
	if r.options.ResyncPeriod > 0 {
		m.resync = r.clock.NewTimer(r.options.ResyncPeriod)
		defer m.resync.Stop()
	}
	over := false
	defer func() {
		if _ = m.leaveCheck(); m.check != nil {
			<-m.check.done
			_ = m.endCheck()
		}
	}()
	defer m.stopWatch() // where a state has panicked
	defer func() { m.panicking = m.panicking || !over }()

	logger := r.logger(ctx).V(3)
	logger.Info("Starting reflector", "resyncPeriod", r.options.ResyncPeriod)
	defer logger.Info("Stopped reflector")
	pprof.Do(ctx, pprof.Labels("reflector", r.name), func(context.Context) { m.mirror() })
	over = true
	return m.result
}

// mirror lists and watches until the context or the round ends.
func (m *run) mirror() {
	for next := stateWhole; next != stateEnd; {
		older := cmp.Or(m.older, m.leaveCheck())
		m.older = nil
		switch {
		case m.ctx.Err() != nil:
			return
		case older != nil:
			next = m.fail(PhaseWatching, older, m.clock.Now(), false)
		case next == stateWatch:
			next = m.watchState(nil)
		case m.mayStream():
			next = m.watchState(m.newListing(ListStreaming))
		default:
			next = m.listState()
		}
	}
}

// pause waits before the state to, after a failure or after none: as long as the backoff asks for, and so that the requests
// of that state stay within the limits of G13.
func (m *run) pause(to state, f failure) state {
	switch f.requests = 2; { // a list and its watch
	case to == stateWatch:
		f.requests = 1
	case m.streams && m.streamIsDue() && !f.atOnce:
		f.requests = streamListWatch // the pause makes room for what follows if the stream fails again
	case m.mayStream():
		f.requests = 1
	}
	pause := m.progress.backoff.pause(m.clock.Now(), f)
	m.rested = pause > 0 || m.rested && f.began.IsZero()
	if pause > 0 {
		m.setPhase(PhasePaused, pause)
		timer := m.clock.NewTimer(pause)
		defer timer.Stop()
		for m.next(waiting{timer: timer.C()}).end == endDone { // a check that was cancelled: its failure is reported at once
			m.older = m.endCheck()
		}
	}
	return to
}

// waiting is what a state waits for; a nil channel never comes.
type waiting struct {
	// done is that of a call, by default of the check that is under way.
	done   <-chan struct{}
	timer  <-chan time.Time
	events <-chan watch.Event
	items  <-chan listedItem
	// relists are requests for a list, answered by closing the channel that comes.
	relists <-chan chan struct{}
	// resync has a failed resync end the wait. Otherwise it is only reported.
	resync bool
}

// end is what ended a wait.
type end int

const (
	endContext end = iota // the context has ended
	endDone               // done was closed
	endTimer              // the timer has fired
	endEvent              // the watch has sent something
	endClosed             // the watch has closed
	endItem               // a list has brought an item
	endResync             // a resync has failed
	endRelist             // a list was requested
)

// woken is how a wait ended, with what it brought.
type woken struct {
	end   end
	event watch.Event
	item  listedItem
	err   error
}

// next waits for the first of w and the context, and resyncs meanwhile. A run waits nowhere else, except for calls into
// the source that outlive their context.
func (m *run) next(w waiting) woken {
	if w.done == nil && m.check != nil {
		w.done = m.check.done
	}
	var resync <-chan time.Time
	if m.resync != nil {
		resync = m.resync.C()
	}
	// The context is asked first: a busy watch must not hide its end, and a select is only fair.
	for m.ctx.Err() == nil {
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
		case item := <-w.items:
			return woken{end: endItem, item: item}
		case listed := <-w.relists:
			m.relisted = append(m.relisted, listed)
			return woken{end: endRelist}
		case <-resync:
			switch err := m.resyncNow(); {
			case err == nil:
			case w.resync:
				return woken{end: endResync, err: err}
			default:
				m.failed(m.ctx, err)
			}
		}
	}
	return woken{end: endContext}
}

// resyncNow resyncs the store, if it has anything yet and ShouldResync agrees.
func (m *run) resyncNow() error {
	defer m.resync.Reset(m.options.ResyncPeriod)
	if !m.listed || m.ShouldResync != nil && !m.ShouldResync() {
		return nil
	}
	m.logger(m.ctx).V(4).Info("Resync")
	objects, other := splitObjectErrors(m.store.Resync())
	for _, bad := range objects {
		m.quarantined(m.ctx, bad)
	}
	if other != nil {
		return &StoreError{Op: "Resync", Err: other}
	}
	return nil
}

// An item of a list that could not be decoded may have been damaged on its way, and the watch does not bring it again until
// it is next written: so there is one more list, while the watch continues until then. Each version of an item has that
// once, and such lists are a minute apart: an item that is never decoded stays quarantined.
const (
	refetchAfter    = 2 * time.Second
	refetchInterval = time.Minute
)

// undecoded are the versions of the quarantined objects that could not be decoded, by key. Those without a version, and so
// without readable metadata, cannot be distinguished, and count as one.
func (m *run) undecoded() map[string]string {
	versions := map[string]string{}
	for _, q := range m.quarantine.list(func(at quarantinePlace) bool { return at.part == m.quarantine }) {
		switch {
		case q.Stage == stageDecode && q.ResourceVersion != "":
			versions[q.Key] = q.ResourceVersion
		case q.Stage == stageDecode:
			versions[""] = ""
		}
	}
	return versions
}

// errDiverged ends a watch because the store was found to differ from the source, or this replica's share has changed.
var errDiverged = fmt.Errorf("the newest state was asked for: %w", errRefetch)

// errRefetch ends a watch because a list is due, for one because of undecoded items.
var errRefetch = errors.New("one more list is due")

// errEnoughRead ends a list of which only the version is wanted.
var errEnoughRead = errors.New("one object is enough")

// refetchLater notes the undecoded items of a list that was committed, and when to list again for those that the list
// before did not have.
func (m *run) refetchLater() {
	before := m.progress.undecoded
	if m.progress.undecoded, m.refetchAt = nil, (time.Time{}); m.quarantine.any() {
		m.progress.undecoded = m.undecoded()
	}
	for key, version := range m.progress.undecoded {
		if known, again := before[key]; !again || known != version {
			m.refetchAt = latest(m.clock.Now().Add(refetchAfter), m.progress.refetched.Add(refetchInterval))
			return
		}
	}
}

// A server that was restored from an older copy accepts a watch from a version that it has not reached yet, and is silent
// until it has. So after an outage, and when a watch is suspiciously silent, the source is asked for its present version,
// by a list of one object. That is done beside the open watch, and not before it: then no restore falls between the two,
// and no retry waits for it.

const (
	// checkSettle is how long a watch must have been open before the check: one that is
	// cut at once costs no second request.
	checkSettle = time.Second
	// checkSpacing is the least time from one check to the next.
	checkSpacing = 20 * time.Second
	// checkPatience is how long a check may last.
	checkPatience = 30 * time.Second
	// checkTries is how often a check may fail in a row before it is given up, until the
	// next reason for one.
	checkTries = 3
	// checkRest is how long a source is not checked after an answer that cost it more
	// than one object, or had no version.
	checkRest = time.Hour
	// silence is how long the watches of a source that sends bookmarks may send nothing before it is checked. API servers
	// send about one bookmark a minute.
	silence = 3 * time.Minute
)

// checks is the state of the checks of a source's version.
type checks struct {
	// wanted is true from a watch that was refused or cut, or became silent, until a
	// check or a whole state has answered it.
	wanted bool
	// last is when a check was begun, failures how many failed in a row.
	last     time.Time
	failures int
	// rest is when the source may be checked again.
	rest time.Time
}

// versionCheck is one check that is under way.
type versionCheck struct {
	*sideCall
	cancel context.CancelFunc
	// have is the mirror's version when it began.
	have string
	// These are set when done is closed: the source's version, and whether it sent more than one object.
	got   string
	whole bool
	err   error
	// left is true once its watch has ended before it, slow once it was waited for and reported.
	left, slow bool
}

// serveTimer does everything that is due beside an open watch, and sets the watch's timer to the next due time. The error, if any,
// ends the watch.
func (m *run) serveTimer(w *openWatch) error {
	now, next, checks := m.clock.Now(), w.expires, &m.progress.checks
	if w.listing != nil { // one that keeps sending is not cut, however long that lasts
		next = latest(w.answered, m.progress.heard).Add(streamQuiet)
	}
	isDue := func(at time.Time) bool {
		if now.Before(at) && at.Before(next) {
			next = at
		}
		return !now.Before(at)
	}
	if isDue(next) {
		return errWatchOverdue
	}
	if at := m.refetchAt; !at.IsZero() && w.listing == nil && isDue(latest(at, now.Add(m.progress.backoff.stretch(now, 2)))) {
		if m.refetchAt = (time.Time{}); len(m.undecoded()) > 0 { // the watch has brought no later states
			m.progress.refetched = now
			return errRefetch
		}
	}
	_, incomparable := resourceversion.CompareResourceVersion(m.progress.version, m.progress.version)
	switch c := m.check; {
	case w.listing != nil:
	case c != nil:
		if isDue(checks.last.Add(checkPatience)) {
			c.cancel()
		}
	case incomparable != nil || m.wholeLists || now.Before(checks.rest):
	default:
		if !w.quiet && isDue(m.progress.heard.Add(silence)) {
			w.quiet, m.progress.heard, checks.wanted = true, now, checks.wanted || m.bookmarks.Load()
		}
		// The watch has settled, the last check was not just now, and the limits of G13 leave room for another.
		if checks.wanted && isDue(latest(w.answered.Add(min(checkSettle, w.timeout/2)), checks.last.Add(checkSpacing),
			now.Add(m.progress.backoff.stretch(now, 1)))) {
			m.beginCheck(now)
			isDue(now.Add(checkPatience))
		}
	}
	w.timer.Reset(next.Sub(now))
	return nil
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func (m *run) beginCheck(now time.Time) {
	m.progress.checks.last = now
	m.progress.backoff.note(now, false)
	ctx, cancel := context.WithCancel(m.ctx)
	c := &versionCheck{cancel: cancel, have: m.progress.version, err: errSourceExited}
	c.sideCall = apart(func() { c.got, c.whole, c.err = m.sourceVersion(ctx) })
	m.check = c
}

// leaveCheck ends a check that was cancelled. It waits for a slow source no longer than until that is reported, since the
// cache is behind for as long: such a check continues beside the next watch.
func (m *run) leaveCheck() error {
	c := m.check
	if c == nil || c.slow {
		return nil
	}
	if c.slow = m.reportSlow(m.ctx, "List", c.sideCall); c.slow {
		return nil
	}
	return m.endCheck()
}

// endCheck evaluates a check that is done. The error, if any, ends the watch.
func (m *run) endCheck() error {
	c, checks := m.check, &m.progress.checks
	m.check = nil
	c.cancel()
	m.rethrow("List", c.sideCall)
	switch {
	case m.ctx.Err() != nil:
	case c.left && errors.Is(c.err, context.Canceled): // made again beside the next watch, however short that is
		checks.last = time.Time{}
	case c.err == nil:
		checks.wanted, checks.failures = false, 0
		if c.whole || c.got == "" {
			checks.rest = m.clock.Now().Add(checkRest)
		}
		if versionBefore(c.got, c.have) {
			return &VersionRegressionError{Kind: "list", Current: c.have, Received: c.got}
		}
	default:
		if m.clock.Since(checks.last) >= checkPatience {
			c.err = fmt.Errorf("not answered within %s: %w", checkPatience, c.err)
		}
		m.progress.backoff.fails(m.clock.Now(), failure{began: checks.last})
		if checks.failures++; checks.failures >= checkTries {
			checks.wanted, checks.failures = false, 0
		}
		m.report(m.ctx, fmt.Errorf("checking the version of %s: %w", m.typeDescription, c.err))
	}
	return nil
}

// sourceVersion asks the source for its present version, by a list of one object. whole is
// true if it sent more; then no more than the second one is read.
func (r *Reflector) sourceVersion(ctx context.Context) (version string, whole bool, err error) {
	items := 0
	one := metav1.ListOptions{Limit: 1, ShardSelector: r.shard.Selector()}
	about, err := r.listItems(ctx, one, func(about metav1.ListMeta, item runtime.Object) error {
		if !isUndecoded(item) { // damage may make two of one
			items++
		}
		if items < 2 {
			return nil
		}
		version = about.ResourceVersion
		return errEnoughRead
	})
	if items > 1 {
		return version, true, nil
	}
	return about.ResourceVersion, false, err
}
