package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
)

// RetryWithDeadline decides whether to retry errors of one kind, until a deadline after the first of a series.
// It is not safe for concurrent use.
type RetryWithDeadline interface {
	// After records a result; nil and errors of another kind do not count.
	After(error)
	// ShouldRetry returns whether the series is within its deadline. Once it is not, the next error starts a new series.
	ShouldRetry() bool
}

type retryWithDeadline struct {
	limit, reset time.Duration
	retryable    func(error) bool
	clock        clock.Clock
	first, last  time.Time // errors of the current series
}

// NewRetryWithDeadline retries retryable errors for maxRetryDuration from the first of a series, which ends after
// minResetPeriod without one.
func NewRetryWithDeadline(
	maxRetryDuration, minResetPeriod time.Duration, isRetryable func(error) bool, clock clock.Clock,
) RetryWithDeadline {
	return &retryWithDeadline{limit: maxRetryDuration, reset: minResetPeriod, retryable: isRetryable, clock: clock}
}

func (r *retryWithDeadline) After(err error) {
	if !r.retryable(err) {
		return
	}
	now := r.clock.Now()
	if r.first.IsZero() || now.Sub(r.last) >= r.reset {
		r.first = now
	}
	r.last = now
}

func (r *retryWithDeadline) ShouldRetry() bool {
	if r.limit > 0 && r.clock.Since(r.first) <= r.limit {
		return true
	}
	r.first, r.last = time.Time{}, time.Time{}
	return false
}

// action is the reaction to a failed watch.
type action int

const (
	// watchThenList: pause and watch again; after watchesBeforeList failures without progress, list.
	watchThenList action = iota
	// watchAgain: pause and watch again.
	watchAgain
	// watchWithDeadline: watchAgain while RetryWithDeadline allows it, then listAgain.
	watchWithDeadline
	// listAgain: pause and list.
	listAgain
)

// watchActions are the reactions by cause. Other causes have watchThenList, including a cut stream: it may be cut each time at
// an event that cannot be delivered. The causes with watchAgain do not question the version, however often they occur.
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
var permanentCauses = sets.New(CauseExpired, CauseVersionTooLarge, CauseNotFound, CauseForbidden, CauseUnauthorized,
	CauseBadRequest, CauseResponseTooLarge, CauseTLS, CauseCredentials)

// fail reports a failure and returns the next state. activity is PhaseListing, PhaseStreaming or PhaseWatching; request
// says whether the request itself failed, and not its stream.
func (m *run) fail(activity Phase, err error, began time.Time, request bool) state {
	if m.ctx.Err() != nil {
		return stateEnd
	}
	cause := CauseOf(err)
	f := m.recordVersionFailure(activity, cause)
	if cause != CauseOverdueWatch {
		f.began, f.retryAfter = began, max(f.retryAfter, retryAfter(err))
	}
	next, endsCycle := stateList, activity == PhaseListing && !f.atOnce
	if activity == PhaseWatching {
		next, endsCycle = m.afterFailedWatch(cause, err, request)
	}
	if endsCycle && m.singleCycle {
		return m.endCycle(err, request)
	}
	m.reportFailure(m.ctx, err)
	return m.pause(next, f)
}

// recordVersionFailure records what a failure says about the store's version, and how soon the next request may follow.
func (m *run) recordVersionFailure(activity Phase, cause Cause) (f failure) {
	p := &m.progress
	// After a pause for an outage, another pause would only prolong the time for which the cache is stale.
	mayListAtOnce := !p.versionInvalid && len(m.relistWaiters) == 0 && (m.afterPause || activity != PhaseWatching)
	switch cause {
	case causeRegression: // the next list is accepted whatever its version
		p.version, p.versionInvalid = "", true
		m.regression = nil
	case CauseVersionTooLarge:
		// A restored source may never reach the version: a list at that version or newer would fail as well.
		p.versionInvalid = true
		// As API servers ask: a lagging replica may have caught up by then.
		f.atOnce, f.retryAfter = mayListAtOnce, time.Second
	case CauseExpired:
		p.versionInvalid = activity != PhaseWatching
		f.atOnce = mayListAtOnce
	case CauseOverdueWatch:
		f.atOnce = true
	}
	return f
}

// afterFailedWatch returns the state after a failed watch, and whether it ends a single cycle.
func (m *run) afterFailedWatch(cause Cause, err error, request bool) (next state, endsCycle bool) {
	p := &m.progress
	if cause != causeShortWatch {
		p.checks.wanted = true
	}
	action := watchActions[cause]
	if request && cause == CauseConnectionLost { // no stream was cut
		action = watchAgain
	}
	next = stateList
	switch action {
	case watchThenList:
		p.watchFailures++
		if p.watchFailures < watchesBeforeList {
			next = stateWatch
		}
	case watchWithDeadline:
		m.retry.After(err)
		if m.retry.ShouldRetry() {
			next = stateWatch
		}
	case watchAgain:
		next = stateWatch
	}
	// client-go's ListAndWatch does not watch again in these cases.
	return next, next == stateList || action == watchThenList || cause == causeShortWatch
}

// endCycle ends a run of ListAndWatch, which returns the error of a request, and reports any other.
func (m *run) endCycle(err error, request bool) state {
	if request {
		m.setLastFailure(err, true)
		m.result = err
	} else {
		m.reportFailure(m.ctx, err)
	}
	return stateEnd
}
