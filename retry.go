// The answers to failures. Is a watch that failed followed by another one or by a list, and what
// does its failure say about the version?

package cache

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/backoff"
)

// RetryWithDeadline decides whether to retry errors of one kind, until a deadline after the first
// of a series. It is not safe for concurrent use.
type RetryWithDeadline interface {
	// After records a result; nil and errors of another kind do not count.
	After(error)
	// ShouldRetry returns whether the series is within its deadline. Once it is not, the next error
	// starts a new series.
	ShouldRetry() bool
}

type retryWithDeadline struct {
	maxDuration time.Duration
	resetPeriod time.Duration
	isRetryable func(error) bool
	clock       clock.Clock
	// first and last are the times of errors of the current series, zero without one.
	first time.Time
	last  time.Time
}

// NewRetryWithDeadline retries retryable errors for maxRetryDuration from the first of a series,
// which ends after minResetPeriod without one.
func NewRetryWithDeadline(
	maxRetryDuration, minResetPeriod time.Duration,
	isRetryable func(error) bool, clock clock.Clock,
) RetryWithDeadline {
	return &retryWithDeadline{
		maxDuration: maxRetryDuration,
		resetPeriod: minResetPeriod,
		isRetryable: isRetryable,
		clock:       clock,
	}
}

func (r *retryWithDeadline) After(err error) {
	if !r.isRetryable(err) {
		return
	}
	now := r.clock.Now()
	if r.first.IsZero() || now.Sub(r.last) >= r.resetPeriod {
		r.first = now
	}
	r.last = now
}

func (r *retryWithDeadline) ShouldRetry() bool {
	if r.maxDuration > 0 && r.clock.Since(r.first) <= r.maxDuration {
		return true
	}
	r.first = time.Time{}
	r.last = time.Time{}
	return false
}

// action is the reaction to a failed watch.
type action int

const (
	// watchThenList: pause and watch again; after watchesBeforeList failures without progress,
	// list.
	watchThenList action = iota
	// watchAgain: pause and watch again.
	watchAgain
	// watchThenCheck: as watchThenList, but before the list check that the source has moved on, and
	// that another watch fails.
	watchThenCheck
	// watchWithDeadline: watchAgain while RetryWithDeadline allows it, then listAgain.
	watchWithDeadline
	// listAgain: pause and list.
	listAgain
)

const (
	// watchesBeforeList is the number of consecutive watches that fail at one version before the
	// reflector lists: about ten seconds of backoff.
	watchesBeforeList = 10
	// refusingBeforeList is how long requests for a watch fail before the reflector lists. A
	// gateway that does not stream refuses each one after its timeout.
	refusingBeforeList = 30 * time.Second
	// watchProbe is how long a source that has refused to be watched at all is only listed.
	watchProbe = time.Hour
	// refusalsBeforeNewest is the number of consecutive lists that the source refuses with internal
	// errors before one is requested at "".
	refusalsBeforeNewest = 10
)

// watchActions are the reactions by cause. Other causes have watchThenList, including a cut stream:
// it may be cut each time at an event that cannot be delivered. The causes with watchAgain do not
// question the version, however often they occur.
var watchActions = map[Cause]action{
	CauseExpired:           listAgain,
	CauseVersionTooLarge:   listAgain,
	causeRegression:        listAgain,
	causeStoreError:        listAgain,
	CauseConnectionRefused: watchAgain,
	CauseTooManyRequests:   watchAgain,
	causeShortWatch:        watchAgain,
	CauseOverdueWatch:      watchAgain,
	CauseInternal:          watchWithDeadline,
	causeStream:            watchWithDeadline,
}

// permanentCauses are the causes for which the same request would fail again.
var permanentCauses = sets.New(
	CauseExpired, CauseVersionTooLarge, CauseNotFound, CauseForbidden, CauseUnauthorized,
	CauseBadRequest, CauseResponseTooLarge, CauseTLS, CauseCredentials)

// failedAttempt is a list, a streaming list or a watch that failed.
type failedAttempt struct {
	// activity is PhaseListing, PhaseStreaming or PhaseWatching.
	activity Phase
	err      error
	// began is when it was requested, or now if it worked.
	began time.Time
	// request is true if the request itself failed, and not its stream.
	request bool
	// worked is the watch if that ends a series of failures, or nil.
	worked *backoff.Watch
}

// isUnsupported reports whether the source has refused to be watched at all.
func (f failedAttempt) isUnsupported() bool {
	return f.request && apierrors.IsMethodNotSupported(f.err)
}

// fail reports a failure and returns the next state. It decides whether a list follows.
func (m *run) fail(failed failedAttempt) state {
	if m.ctx.Err() != nil {
		return stateEnd
	}
	cause := CauseOf(failed.err)
	f := m.recordVersionFailure(failed.activity, cause)
	if asked := retryAfter(failed.err); asked >= f.AtLeast { // with its jitter, if they are equal
		f.RetryAfter = asked
	}
	if cause != CauseOverdueWatch {
		f.Began = failed.began
	}
	next := stateList
	endsCycle := failed.activity == PhaseListing && !f.AtOnce
	if failed.activity == PhaseWatching {
		next, endsCycle = m.afterFailedWatch(failed, cause)
	}
	if endsCycle && m.singleCycle {
		return m.endCycle(failed)
	}
	attempt := m.attemptAfter(failed, next, f)
	m.reportFailure(failed.err, attempt.at)
	return m.pauseUntil(attempt)
}

// attemptAfter returns the next attempt after a failed one.
func (m *run) attemptAfter(failed failedAttempt, next state, f backoff.Failure) nextAttempt {
	if failed.worked == nil {
		return m.attemptAfterFailure(next, f)
	}
	ended := *failed.worked
	ended.AtOnce = f.AtOnce
	ended.RetryAfter = f.RetryAfter
	ended.AtLeast = f.AtLeast
	return m.attemptAfterWatch(next, ended)
}

// recordVersionFailure records what a failure says about the store's version, and how soon the next
// request may follow.
func (m *run) recordVersionFailure(activity Phase, cause Cause) (f backoff.Failure) {
	p := m.progress
	// After a pause for an outage, another pause would only prolong the time for which the cache is
	// stale.
	mayListAtOnce := !m.mustListNewest() && (m.afterPause || activity != PhaseWatching)
	switch cause {
	case causeRegression: // the next list is accepted whatever its version
		p.version = ""
		p.versionInvalid = true
		m.regression = nil
	case CauseVersionTooLarge:
		// A restored source may never reach the version: a list at that version or newer would fail
		// as well.
		p.versionInvalid = true
		// As API servers ask: a lagging replica may have caught up by then.
		f.AtOnce = mayListAtOnce
		f.AtLeast = time.Second
	case CauseExpired:
		// A list at the version may have been answered with exactly that version.
		isAgain := p.version != "" && p.expired == p.version
		p.versionInvalid = activity != PhaseWatching || isAgain
		f.AtOnce = mayListAtOnce
		if f.AtOnce && m.mayListAlone() {
			f.Requests = 1
		}
		p.expired = p.version
	case CauseOverdueWatch:
		f.AtOnce = true
	case CauseInternal, CauseBadRequest:
		if activity != PhaseWatching {
			p.refusedLists.record(cause == CauseBadRequest)
		}
	}
	return f
}

// mayListAlone reports whether the list after a 410 needs no room for the watch after it in the
// limits of G13: the content comes first. Not for a second 410: if the source remembers its versions
// for less than the watch waits, each wait would cause the next one.
func (m *run) mayListAlone() bool {
	return m.progress.expired == "" && !startsWithState(m.progress.version)
}

// afterFailedWatch returns the state after a failed watch, and whether it ends a single cycle.
func (m *run) afterFailedWatch(failed failedAttempt, cause Cause) (next state, endsCycle bool) {
	m.wantCheck(failed, cause)
	if failed.isUnsupported() {
		m.progress.polledUntil = m.clock.Now().Add(watchProbe)
	}
	action := m.watchAction(failed, cause)
	next = m.countFailedWatch(action, failed)
	// client-go's ListAndWatch does not watch again in these cases. A watch that was cut is resumed.
	wasCut := cause == CauseConnectionLost && !failed.request
	mustList := action == watchThenList && !wasCut
	endsCycle = next != stateWatch || mustList || cause == causeShortWatch
	return next, endsCycle
}

// countFailedWatch counts a failed watch, and returns the state after it.
func (m *run) countFailedWatch(action action, failed failedAttempt) state {
	switch action {
	case watchAgain:
		return stateWatch
	case watchThenCheck, watchThenList:
		watches := &m.progress.failedWatches
		isLasting := watches.record(failed, m.clock.Now())
		if watches.refused && failed.request {
			return stateList
		}
		if !isLasting {
			return stateWatch
		}
		if action == watchThenCheck && m.canCheck() {
			return stateCheck
		}
		watches.refused = failed.request
	case watchWithDeadline:
		m.retry.After(failed.err)
		if m.retry.ShouldRetry() {
			return stateWatch
		}
	}
	return stateList
}

// watchAction returns the reaction to a failed watch.
func (m *run) watchAction(failed failedAttempt, cause Cause) action {
	if failed.isUnsupported() {
		return listAgain
	}
	if cause == causeShortWatch && m.progress.emptyWatches.listWanted {
		return listAgain
	}
	isUnknown := errors.Is(failed.err, errNotStatus) ||
		apierrors.HasStatusCause(failed.err, causeUnknownError)
	if isUnknown {
		return listAgain
	}
	if failed.request && cause == CauseConnectionLost { // no stream was cut
		return watchThenCheck
	}
	return watchActions[cause]
}

// wantCheck requests a check of the source's version after a watch that was refused or cut:
// meanwhile the source may have been restored from an older copy. A watch that advanced the version
// has just shown newer ones.
func (m *run) wantCheck(failed failedAttempt, cause Cause) {
	switch {
	case cause == causeShortWatch:
	case failed.worked == nil:
		m.progress.checks.want()
	case !failed.worked.Advanced:
		m.progress.checks.wantAfterIdleWatch()
	}
}

// isPolled reports whether the source cannot be watched: its lists are repeated instead.
func (m *run) isPolled() bool {
	return !m.singleCycle && m.clock.Now().Before(m.progress.polledUntil)
}

// mustListNewest reports whether the next list is requested at "", since the store's version is
// invalid or may be refused, or a caller waits for the newest state.
func (m *run) mustListNewest() bool {
	p := m.progress
	return p.versionInvalid || p.refusedLists.newestIsDue || len(m.relistWaiters) > 0
}

// endCycle ends a run of ListAndWatch, which returns the error of a request, and reports any other.
func (m *run) endCycle(failed failedAttempt) state {
	if failed.request {
		m.reflector.setSourceFailure(failed.err, time.Time{})
		m.result = failed.err
	} else {
		m.reportFailure(failed.err, time.Time{})
	}
	return stateEnd
}
