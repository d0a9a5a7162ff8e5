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
)

func (*DivergenceError) cause() Cause { return causeDivergence }

// CauseOf returns the kind of err: a constant, the source error's FailureCause() string, or
// "transform-error", "index-error", "invalid-object" (any other stage), "handler-error",
// "store-error", "wrong-type", "regression", "short-watch", "slow-source", "mutated", "divergence",
// "no-bookmark", "stream-error" (500 on an open watch), "panic", "misuse".
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
	case apierrors.HasStatusCause(err, causeBadFrame), apierrors.HasStatusCause(err, causeUnknownError),
		errors.Is(err, http.ErrSchemeMismatch):
		return CauseInvalidResponse
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return CauseTLS
	case errors.As(err, new(*net.DNSError)), errors.As(err, &dial) && dial.Op == "dial":
		return CauseUnreachable
	}
	return CauseOther
}

func (*ProcessError) cause() Cause { return causeHandlerError }

func (KeyError) cause() Cause { return causeInvalidObject }

func (*StoreError) cause() Cause { return causeStoreError }

func (*ListTypeError) cause() Cause { return causeWrongType }

func (*VersionRegressionError) cause() Cause { return causeRegression }

func (*VeryShortWatchError) cause() Cause { return causeShortWatch }

func (*SlowSourceError) cause() Cause { return causeSlowSource }

func (*PanicError) cause() Cause { return causePanic }

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
	// Package kubeapi puts these into the error event of a stream that broke. The two packages do
	// not import each other.
	causeStreamCut metav1.CauseType = "WatchStreamCut"
	causeBadFrame  metav1.CauseType = "WatchBadFrame"
	// The server has ended the watch, and its ERROR frame, which is intact, does not tell why.
	causeUnknownError metav1.CauseType = "WatchUnknownError"
	// client-go's clients put this into the error event of a stream that they could not read. The
	// event's code is 500 although no server sent it.
	causeClientDecoding metav1.CauseType = "ClientWatchDecoding"
)

// isClientCut reports whether client-go's client could not read a stream because the connection was
// cut. The client keeps only the text of an HTTP/2 or TLS error.
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
