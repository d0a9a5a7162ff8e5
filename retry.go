package cache

import (
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
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

// Cause is the kind of a failure: CauseExpired, CauseVersionTooLarge, CauseTooManyRequests, CauseInternal, CauseUnavailable,
// CauseNotFound, CauseForbidden, CauseUnauthorized, CauseBadRequest, CauseConnectionRefused, CauseUnreachable, CauseTLS,
// CauseCredentials, CauseInvalidResponse, CauseResponseTooLarge, CauseStalled, CauseConnectionLost, CauseOverdueWatch,
// CauseOther; see CauseOf for more. Kinds may be added.
type Cause string

// The kinds of failure that have no error type of this package.
const (
	CauseExpired           Cause = "expired"            // the version is no longer known (410)
	CauseVersionTooLarge   Cause = "version-too-large"  // the version is not known yet
	CauseTooManyRequests   Cause = "too-many-requests"  // 429
	CauseInternal          Cause = "internal-error"     // 500
	CauseUnavailable       Cause = "unavailable"        // 503, server timeouts
	CauseNotFound          Cause = "not-found"          // 404
	CauseForbidden         Cause = "forbidden"          // 403
	CauseUnauthorized      Cause = "unauthorized"       // 401
	CauseBadRequest        Cause = "bad-request"        // 400, 405, 422
	CauseConnectionRefused Cause = "connection-refused" // connection refused
	CauseUnreachable       Cause = "unreachable"        // no such host, no route, no answer to a dial
	CauseTLS               Cause = "tls"                // the server's certificate is not trusted
	CauseCredentials       Cause = "credentials"        // they could not be read, or added to the request
	CauseInvalidResponse   Cause = "invalid-response"   // the response is not a list or watch
	CauseResponseTooLarge  Cause = "response-too-large" // the response exceeds a limit
	CauseStalled           Cause = "stalled"            // nothing was received for too long
	CauseConnectionLost    Cause = "connection-lost"    // EOF in the middle
	CauseOverdueWatch      Cause = "overdue-watch"      // half open
	CauseOther             Cause = "other"
)

// The causes without an exported constant. CauseOf documents their texts.
const (
	causeWrongType     Cause = "wrong-type"
	causeShortWatch    Cause = "short-watch"
	causeRegression    Cause = "regression"
	causeInvalidObject Cause = "invalid-object"
	causeTransform     Cause = "transform-error"
	causeIndex         Cause = "index-error"
	causeHandlerError  Cause = "handler-error"
	causeStoreError    Cause = "store-error"
	causeSlowSource    Cause = "slow-source"
	causeMisuse        Cause = "misuse"
	causePanic         Cause = "panic"
	causeMutated       Cause = "mutated"
	causeDivergence    Cause = "divergence"
	causeNoBookmark    Cause = "no-bookmark"  // a streaming list without its end
	causeStream        Cause = "stream-error" // 500 on an open watch
)

// CauseOf returns the kind of err: a constant, the source error's FailureCause() string, or "transform-error",
// "index-error", "invalid-object" (any other stage), "handler-error", "store-error", "wrong-type", "regression",
// "short-watch", "slow-source", "mutated", "divergence", "no-bookmark", "stream-error" (500 on an open watch), "panic",
// "misuse".
func CauseOf(err error) Cause {
	// The outermost type counts: a StoreError may wrap an ObjectError.
	if own := interface{ cause() Cause }(nil); errors.As(err, &own) {
		return own.cause()
	}
	for _, known := range causes {
		if known.matches(err) {
			return known.cause
		}
	}
	var named interface{ FailureCause() string }
	var dial *net.OpError
	switch {
	case errors.As(err, &named):
		return Cause(named.FailureCause())
	case apierrors.HasStatusCause(err, causeBadFrame), errors.Is(err, http.ErrSchemeMismatch):
		return CauseInvalidResponse
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return CauseTLS
	case errors.As(err, new(*net.DNSError)), errors.As(err, &dial) && dial.Op == "dial":
		return CauseUnreachable
	}
	return CauseOther
}

func (*ProcessError) cause() Cause           { return causeHandlerError }
func (KeyError) cause() Cause                { return causeInvalidObject }
func (*StoreError) cause() Cause             { return causeStoreError }
func (*ListTypeError) cause() Cause          { return causeWrongType }
func (*VersionRegressionError) cause() Cause { return causeRegression }
func (*VeryShortWatchError) cause() Cause    { return causeShortWatch }
func (*SlowSourceError) cause() Cause        { return causeSlowSource }
func (*PanicError) cause() Cause             { return causePanic }
func (e *MutatedObjectError) cause() Cause {
	if e.Err != nil {
		return causeMisuse
	}
	return causeMutated
}

func (e *ObjectError) cause() Cause {
	return cmp.Or(map[string]Cause{stageTransform: causeTransform, stageIndex: causeIndex}[e.Stage], causeInvalidObject)
}

// causes classifies errors that do not have a type of this package. The first match counts.
var causes = []struct {
	cause   Cause
	matches func(error) bool
}{
	{CauseExpired, apierrors.IsResourceExpired}, {CauseExpired, apierrors.IsGone}, // IsGone: before Kubernetes 1.18
	{causeMisuse, isError(ErrAlreadyRan)},
	{CauseVersionTooLarge, isTooLargeVersionError},
	{CauseConnectionLost, isClientCut},
	{CauseInvalidResponse, hasCause(causeClientDecoding)},
	{CauseTooManyRequests, apierrors.IsTooManyRequests},
	{CauseInternal, apierrors.IsInternalError},
	{CauseNotFound, apierrors.IsNotFound},
	{CauseForbidden, apierrors.IsForbidden},
	{CauseUnauthorized, apierrors.IsUnauthorized},
	{CauseBadRequest, apierrors.IsInvalid}, {CauseBadRequest, apierrors.IsBadRequest},
	{CauseBadRequest, apierrors.IsMethodNotSupported},
	{CauseUnavailable, apierrors.IsServiceUnavailable}, {CauseUnavailable, apierrors.IsServerTimeout},
	{CauseUnavailable, apierrors.IsTimeout},
	{CauseConnectionRefused, utilnet.IsConnectionRefused},
	{CauseConnectionLost, hasCause(causeStreamCut)},
	{CauseConnectionLost, isError(io.EOF)}, {CauseConnectionLost, isError(io.ErrUnexpectedEOF)},
	{CauseConnectionLost, utilnet.IsProbableEOF}, {CauseConnectionLost, utilnet.IsHTTP2ConnectionLost},
}

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func hasCause(cause metav1.CauseType) func(error) bool {
	return func(err error) bool { return apierrors.HasStatusCause(err, cause) }
}

const (
	// Package kubeapi puts these into the error event of a stream that broke. The two packages do not import each other.
	causeStreamCut metav1.CauseType = "WatchStreamCut"
	causeBadFrame  metav1.CauseType = "WatchBadFrame"
	// client-go's clients put this into the error event of a stream that they could not read. The event's code is 500
	// although no server sent it.
	causeClientDecoding metav1.CauseType = "ClientWatchDecoding"
)

// isClientCut reports whether client-go's client could not read a stream because the connection was cut. The client keeps
// only the text of an HTTP/2 or TLS error.
func isClientCut(err error) bool {
	return apierrors.HasStatusCause(err, causeClientDecoding) && slices.ContainsFunc([]string{
		"stream error", "connection error", "http2: ", "GOAWAY", "unexpected EOF", "tls: ", "read tcp ",
		"connection reset", "i/o timeout",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// isTooLargeVersionError recognizes the three forms of API servers: a typed cause since 1.18.6, the cause's message since
// 1.17, the status's message before.
func isTooLargeVersionError(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var timeout apierrors.APIStatus
	if !apierrors.IsTimeout(err) || !errors.As(err, &timeout) {
		return false
	}
	status := timeout.Status()
	return strings.Contains(status.String(), "Too large resource version")
}

// retryAfter returns how long the server asks to wait, or 0.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err) // may be negative for a server timeout
	return time.Duration(max(seconds, 0)) * time.Second
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
