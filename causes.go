// The kinds of failure. Which Cause has this error? CauseOf asks the error itself, then looks it up
// among the known errors of API servers, clients and the network.

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
)

// Cause is the kind of a failure: CauseExpired, CauseVersionTooLarge, CauseTooManyRequests,
// CauseInternal, CauseUnavailable, CauseNotFound, CauseForbidden, CauseUnauthorized,
// CauseBadRequest, CauseConnectionRefused, CauseUnreachable, CauseTLS, CauseCredentials,
// CauseInvalidResponse, CauseResponseTooLarge, CauseStalled, CauseConnectionLost,
// CauseOverdueWatch, CauseOther; see CauseOf for more. Kinds may be added.
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
	CauseUnreachable       Cause = "unreachable"        // no host, no route, no answer to a dial
	CauseTLS               Cause = "tls"                // a certificate is refused, or the server has no TLS
	CauseCredentials       Cause = "credentials"        // could not be read or added to the request
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
	causeDuplicateKey  Cause = "duplicate-key"
	causeNoBookmark    Cause = "no-bookmark"  // a streaming list without its end
	causeStream        Cause = "stream-error" // 500 on an open watch
)

// CauseOf returns the kind of err: a constant, the source error's FailureCause() string, or
// "transform-error", "index-error", "invalid-object" (any other stage), "handler-error",
// "store-error", "wrong-type", "regression", "short-watch", "slow-source", "mutated", "divergence",
// "duplicate-key", "no-bookmark", "stream-error" (500 on an open watch), "panic", "misuse".
func CauseOf(err error) Cause {
	// The outermost type counts: a StoreError may wrap an ObjectError.
	var own interface{ cause() Cause }
	if errors.As(err, &own) {
		return own.cause()
	}
	for _, known := range causes {
		if known.matches(err) {
			return known.cause
		}
	}
	var named interface{ FailureCause() string }
	if errors.As(err, &named) {
		return Cause(named.FailureCause())
	}
	for _, known := range transportCauses {
		if known.matches(err) {
			return known.cause
		}
	}
	return CauseOther
}

// caused is an error with a cause that depends on where it occurred.
type caused struct {
	error
	kind Cause
}

func (e caused) Unwrap() error { return e.error }
func (e caused) cause() Cause  { return e.kind }

func (*ProcessError) cause() Cause { return causeHandlerError }

func (KeyError) cause() Cause { return causeInvalidObject }

func (*StoreError) cause() Cause { return causeStoreError }

func (*ListTypeError) cause() Cause { return causeWrongType }

func (*VersionRegressionError) cause() Cause { return causeRegression }

func (*VeryShortWatchError) cause() Cause { return causeShortWatch }

func (*SlowSourceError) cause() Cause { return causeSlowSource }

func (*PanicError) cause() Cause { return causePanic }

func (*DivergenceError) cause() Cause { return causeDivergence }

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

// knownCause is the cause of the errors that match.
type knownCause struct {
	cause   Cause
	matches func(error) bool
}

// causes classifies errors that do not have a type of this package. The first match counts.
var causes = []knownCause{
	{CauseExpired, apierrors.IsResourceExpired},
	{CauseExpired, apierrors.IsGone}, // before Kubernetes 1.18
	{causeMisuse, isError(ErrAlreadyRan)},
	{CauseVersionTooLarge, isTooLargeVersionError},
	{CauseConnectionLost, isClientCut},
	{CauseInvalidResponse, hasCause(causeClientDecoding)},
	{CauseTooManyRequests, apierrors.IsTooManyRequests},
	{CauseInternal, apierrors.IsInternalError},
	{CauseNotFound, apierrors.IsNotFound},
	{CauseForbidden, apierrors.IsForbidden},
	{CauseUnauthorized, apierrors.IsUnauthorized},
	{CauseBadRequest, apierrors.IsInvalid},
	{CauseBadRequest, apierrors.IsBadRequest},
	{CauseBadRequest, apierrors.IsMethodNotSupported},
	{CauseUnavailable, apierrors.IsServiceUnavailable},
	{CauseUnavailable, apierrors.IsServerTimeout},
	{CauseUnavailable, apierrors.IsTimeout},
	{CauseConnectionRefused, utilnet.IsConnectionRefused},
	{CauseConnectionLost, hasCause(causeStreamCut)},
	{CauseConnectionLost, isError(io.EOF)},
	{CauseConnectionLost, isError(io.ErrUnexpectedEOF)},
	{CauseConnectionLost, utilnet.IsProbableEOF},
	{CauseConnectionLost, utilnet.IsHTTP2ConnectionLost},
}

// transportCauses are for errors that the source does not classify by FailureCause.
var transportCauses = []knownCause{
	{CauseInvalidResponse, hasCause(causeBadFrame)},
	{CauseInvalidResponse, hasCause(causeUnknownError)},
	{CauseInvalidResponse, isError(http.ErrSchemeMismatch)},
	{CauseTLS, hasType[*tls.CertificateVerificationError]},
	{CauseTLS, hasType[tls.RecordHeaderError]},
	{CauseTLS, isHandshakeRefused},
	{CauseUnreachable, hasType[*net.DNSError]},
	{CauseUnreachable, isDialError},
}

func hasType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isHandshakeRefused reports whether one side refused the other's TLS version or certificate.
func isHandshakeRefused(err error) bool {
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && (operation.Op == "remote error" || operation.Op == "local error")
}

func isDialError(err error) bool {
	operation, ok := errors.AsType[*net.OpError](err)
	return ok && operation.Op == "dial"
}

func isError(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func hasCause(cause metav1.CauseType) func(error) bool {
	return func(err error) bool { return apierrors.HasStatusCause(err, cause) }
}

const (
	// Package kubeapi puts these into the error event of a stream that broke. The two packages do
	// not import each other.
	causeStreamCut metav1.CauseType = "WatchStreamCut"
	causeBadFrame  metav1.CauseType = "WatchBadFrame"
	// The server has ended the watch, and its ERROR frame, which is intact, does not tell why.
	causeUnknownError metav1.CauseType = "WatchUnknownError"
	// Package sources puts this into the error event of a watch that has failed because the source
	// could not poll: a list would fail with the same error.
	causePollFailed metav1.CauseType = "PollFailed"
	// client-go's clients put this into the error event of a stream that they could not read. The
	// event's code is 500 although no server sent it.
	causeClientDecoding metav1.CauseType = "ClientWatchDecoding"
)

// isClientCut reports whether client-go's client could not read a stream because the connection was
// cut. The client keeps only the text of an HTTP/2 or TLS error.
func isClientCut(err error) bool {
	if !apierrors.HasStatusCause(err, causeClientDecoding) {
		return false
	}
	text := err.Error()
	return slices.ContainsFunc(cutTexts, func(part string) bool {
		return strings.Contains(text, part)
	})
}

// cutTexts are parts of the errors of HTTP/2, TLS and TCP about a connection that was cut.
var cutTexts = []string{
	"stream error",
	"connection error",
	"http2: ",
	"GOAWAY",
	"unexpected EOF",
	"tls: ",
	"read tcp ",
	"connection reset",
	"i/o timeout",
}

// isTooLargeVersionError recognizes the forms of API servers: a typed cause since 1.18.6, the
// cause's message since 1.17, the status's message before, in the oldest with code 500 in place of
// 504.
func isTooLargeVersionError(err error) bool {
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var answer apierrors.APIStatus
	isAboutVersions := apierrors.IsTimeout(err) || apierrors.IsInternalError(err)
	if !isAboutVersions || !errors.As(err, &answer) {
		return false
	}
	status := answer.Status()
	return strings.Contains(status.String(), "Too large resource version")
}

// retryAfter returns how long the server asks to wait, or 0.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err) // may be negative for a server timeout
	return time.Duration(max(seconds, 0)) * time.Second
}
