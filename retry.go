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
// says whether the request itself failed, and not its stream. ListAndWatch returns the error of a request; it returns nil where
// client-go's does not watch again.
func (m *run) fail(activity Phase, err error, began time.Time, request bool) state {
	if m.ctx.Err() != nil {
		return stateEnd
	}
	p, cause, f := &m.progress, CauseOf(err), failure{began: began, retryAfter: retryAfter(err)}
	switch cause {
	case causeRegression: // the next list is accepted whatever its version
		p.version, p.versionInvalid = "", true
		m.regression = nil
	case CauseVersionTooLarge:
		// As API servers ask: a lagging replica may have caught up by then.
		f.retryAfter = max(f.retryAfter, time.Second)
		fallthrough
	case CauseExpired:
		// After a pause for an outage, another pause would only prolong the time for which the cache is stale.
		f.atOnce = !p.versionInvalid && len(m.relistWaiters) == 0 && (m.afterPause || activity != PhaseWatching)
		// A restored source may never reach the version: a list at that version or newer would fail as well.
		p.versionInvalid = activity != PhaseWatching || cause == CauseVersionTooLarge
	case CauseOverdueWatch:
		f = failure{atOnce: true}
	}
	next, ends := stateList, activity == PhaseListing && !f.atOnce
	if activity == PhaseWatching {
		p.checks.wanted = p.checks.wanted || cause != causeShortWatch
		action := watchActions[cause]
		if request && cause == CauseConnectionLost { // no stream was cut
			action = watchAgain
		}
		switch action {
		case watchThenList:
			if p.watchFailures++; p.watchFailures < watchesBeforeList {
				next = stateWatch
			}
		case watchWithDeadline:
			if m.retry.After(err); m.retry.ShouldRetry() {
				next = stateWatch
			}
		case watchAgain:
			next = stateWatch
		}
		ends = next == stateList || action == watchThenList || cause == causeShortWatch
	}
	if ends && m.singleCycle {
		if request {
			m.setLastFailure(err, true)
			m.result = err
		} else {
			m.reportFailure(m.ctx, err)
		}
		return stateEnd
	}
	m.reportFailure(m.ctx, err)
	return m.pause(next, f)
}
