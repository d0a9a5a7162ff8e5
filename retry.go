package cache

import (
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
	"k8s.io/utils/clock"
)

// RetryWithDeadline decides whether to retry errors of one kind, until a deadline after the first of a series.
// It is not safe for concurrent use.
type RetryWithDeadline interface {
	// After records a result; nil and errors of another kind do not count.
	After(error)
	// ShouldRetry returns whether the run is within its deadline. Once it is not, the next error starts a new run.
	ShouldRetry() bool
}

type retryWithDeadline struct {
	longest, quiet time.Duration
	retryable      func(error) bool
	clock          clock.Clock
	first, last    time.Time
}

// NewRetryWithDeadline retries retryable errors for maxRetryDuration from the first of a run, which ends after
// minResetPeriod without one.
func NewRetryWithDeadline(
	maxRetryDuration, minResetPeriod time.Duration, isRetryable func(error) bool, clock clock.Clock,
) RetryWithDeadline {
	return &retryWithDeadline{longest: maxRetryDuration, quiet: minResetPeriod, retryable: isRetryable, clock: clock}
}

func (r *retryWithDeadline) After(err error) {
	if !r.retryable(err) {
		return
	}
	now := r.clock.Now()
	if r.first.IsZero() || now.Sub(r.last) >= r.quiet {
		r.first = now
	}
	r.last = now
}

func (r *retryWithDeadline) ShouldRetry() bool {
	if r.longest <= 0 {
		return false
	}
	if r.clock.Since(r.first) <= r.longest {
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
	CauseCredentials       Cause = "credentials"        // ours could not be put on the request
	CauseInvalidResponse   Cause = "invalid-response"   // the answer is no list or watch
	CauseResponseTooLarge  Cause = "response-too-large" // the answer passed a limit
	CauseStalled           Cause = "stalled"            // nothing came for too long
	CauseConnectionLost    Cause = "connection-lost"    // EOF in the middle
	CauseOverdueWatch      Cause = "overdue-watch"      // half open
	CauseOther             Cause = "other"
)

// The causes of errors that have a type; CauseOf names them.
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
	// The outermost of our own: the error of a store may have one of an object inside.
	if own := interface{ cause() Cause }(nil); errors.As(err, &own) {
		return own.cause()
	}
	for _, known := range causes {
		if known.is(err) {
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
	switch e.Stage {
	case stageTransform:
		return causeTransform
	case stageIndex:
		return causeIndex
	}
	return causeInvalidObject
}

// causes are those of errors without a type of ours, in the order in which they are tried.
var causes = []struct {
	is    func(error) bool
	cause Cause
}{
	{apierrors.IsResourceExpired, CauseExpired},
	{apierrors.IsGone, CauseExpired}, // servers before Kubernetes 1.18
	{wraps(errWatchOverdue), CauseOverdueWatch},
	{wraps(errNoInitialEventsEnd), causeNoBookmark},
	{wraps(errTableList), CauseInvalidResponse},
	{wraps(ErrAlreadyRan), causeMisuse},
	{wraps(errHandlerExited), causePanic},
	{isTooLargeVersionError, CauseVersionTooLarge},
	{isClientCut, CauseConnectionLost},
	{has(causeClientDecoding), CauseInvalidResponse},
	{apierrors.IsTooManyRequests, CauseTooManyRequests},
	{apierrors.IsInternalError, CauseInternal},
	{apierrors.IsNotFound, CauseNotFound},
	{apierrors.IsForbidden, CauseForbidden},
	{apierrors.IsUnauthorized, CauseUnauthorized},
	{apierrors.IsInvalid, CauseBadRequest},
	{apierrors.IsBadRequest, CauseBadRequest},
	{apierrors.IsMethodNotSupported, CauseBadRequest},
	{apierrors.IsServiceUnavailable, CauseUnavailable},
	{apierrors.IsServerTimeout, CauseUnavailable},
	{apierrors.IsTimeout, CauseUnavailable},
	{utilnet.IsConnectionRefused, CauseConnectionRefused},
	{has(causeStreamCut), CauseConnectionLost},
	{wraps(io.EOF), CauseConnectionLost},
	{wraps(io.ErrUnexpectedEOF), CauseConnectionLost},
	{utilnet.IsProbableEOF, CauseConnectionLost},
	{utilnet.IsHTTP2ConnectionLost, CauseConnectionLost},
}

func wraps(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func has(cause metav1.CauseType) func(error) bool {
	return func(err error) bool { return apierrors.HasStatusCause(err, cause) }
}

const (
	// causeStreamCut and causeBadFrame are put by package kubeapi into the error event of a stream that broke. The two
	// packages do not import each other.
	causeStreamCut metav1.CauseType = "WatchStreamCut"
	causeBadFrame  metav1.CauseType = "WatchBadFrame"
	// causeClientDecoding is put by client-go's clients into the error event of a stream that they could not read. Its
	// code is 500, but no server has sent it.
	causeClientDecoding metav1.CauseType = "ClientWatchDecoding"
)

// isClientCut says whether client-go's client could not read a stream because its connection was cut: of the error of
// HTTP/2 or TLS it keeps the text alone.
func isClientCut(err error) bool {
	return apierrors.HasStatusCause(err, causeClientDecoding) && slices.ContainsFunc([]string{
		"stream error", "connection error", "http2: ", "GOAWAY", "unexpected EOF", "tls: ", "read tcp ",
		"connection reset", "i/o timeout",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// isTooLargeVersionError knows the three ways in which API servers have said it: a typed cause since 1.18.6, the
// cause's message since 1.17, the status's message before.
func isTooLargeVersionError(err error) bool {
	const message = "Too large resource version"
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsTimeout(err) || !errors.As(err, &status) {
		return false
	}
	said := status.Status()
	return strings.Contains(said.Message, message) || said.Details != nil && slices.ContainsFunc(said.Details.Causes,
		func(cause metav1.StatusCause) bool { return cause.Message == message })
}

// retryAfter is how long the server asks to wait, 0 if it does not say. A source that has not reached a version gets
// a second, for which API servers ask too: a replica that lags may have caught up by then.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err) // a server timeout may say less than 0
	if CauseOf(err) == CauseVersionTooLarge {
		seconds = max(seconds, 1)
	}
	return time.Duration(max(seconds, 0)) * time.Second
}

// action is what follows a failure of a watch.
type action int

const (
	// watchThenList: pause, then watch from the last version; after a bounded number in a row list.
	watchThenList action = iota
	// watchAgain: pause, then watch from the last version.
	watchAgain
	// watchAgainAtOnce: watch from the last version.
	watchAgainAtOnce
	// watchWithDeadline: watchAgain as long as RetryWithDeadline says so, then listAgain.
	watchWithDeadline
	// listAgain: pause, then list.
	listAgain
)

// answersTo is the table of answers to failures by their cause; the zero value is for all others.
var answersTo = map[Cause]struct {
	// request is for the request of a watch, stream for a watch that was open.
	request, stream action
	// definite is true if the same request would fail again.
	definite bool
}{
	CauseExpired:         {listAgain, listAgain, true},
	CauseVersionTooLarge: {listAgain, listAgain, true},
	causeRegression:      {listAgain, listAgain, false},
	causeStoreError:      {listAgain, listAgain, false},
	// None of these says anything against the version, however often it comes.
	CauseConnectionRefused: {watchAgain, watchAgain, false},
	CauseTooManyRequests:   {watchAgain, watchAgain, false},
	causeShortWatch:        {watchAgain, watchAgain, false},
	// A stream that is cut each time may be one that cannot be continued from this version.
	CauseConnectionLost:   {watchAgain, watchThenList, false},
	CauseOverdueWatch:     {watchAgainAtOnce, watchAgainAtOnce, false},
	CauseInternal:         {watchWithDeadline, watchWithDeadline, false},
	causeStream:           {watchWithDeadline, watchWithDeadline, false},
	CauseNotFound:         {definite: true},
	CauseForbidden:        {definite: true},
	CauseUnauthorized:     {definite: true},
	CauseBadRequest:       {definite: true},
	CauseResponseTooLarge: {definite: true},
	CauseTLS:              {definite: true},
	CauseCredentials:      {definite: true},
}

// fail reports a failure and says what follows it. of is PhaseListing, PhaseStreaming or PhaseWatching, and request says
// whether it was the request for that which failed. ListAndWatch returns the error of a request, and ends without one
// where client-go's would not watch again.
func (m *run) fail(of Phase, err error, began time.Time, request bool) state {
	if m.ctx.Err() != nil {
		return stateEnd
	}
	p, cause, f := &m.progress, CauseOf(err), failure{began: began, retryAfter: retryAfter(err)}
	switch cause {
	case causeRegression: // the next list is accepted whatever its version
		p.version, p.unknown = "", true
	case CauseExpired, CauseVersionTooLarge:
		// Another pause would keep a mirror behind whose version was forgotten while the source was away.
		f.atOnce = !p.unknown && len(m.relisted) == 0 && (m.rested || of != PhaseWatching)
		// A restored source may never reach the version: to list at one that is no older would be answered likewise.
		p.unknown = of != PhaseWatching || cause == CauseVersionTooLarge
	}
	next, ends := stateWhole, of == PhaseListing && !f.atOnce
	if of == PhaseWatching {
		p.checks.wanted = p.checks.wanted || cause != causeShortWatch
		action := answersTo[cause].stream
		if request {
			action = answersTo[cause].request
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
		case watchAgainAtOnce:
			next, f = stateWatch, failure{atOnce: true}
		case watchAgain:
			next = stateWatch
		}
		ends = next == stateWhole || action == watchThenList || cause == causeShortWatch
	}
	if ends = ends && m.round; ends && request {
		m.note(err, true)
		m.result = err
	} else {
		m.failed(m.ctx, err)
	}
	if ends {
		return stateEnd
	}
	return m.pause(next, f)
}
