package cache

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/clock"
)

// RetryWithDeadline decides whether to go on retrying errors of one kind: for at
// most a given time since the first of a run of them. It is not safe for
// concurrent use.
type RetryWithDeadline interface {
	// After is told of each result; errors that are not of the kind, and nil,
	// do not count.
	After(error)
	// ShouldRetry says whether the run is still within its deadline. Past it,
	// it says no once and the next error starts a new run.
	ShouldRetry() bool
}

type retryWithDeadline struct {
	longest     time.Duration
	quiet       time.Duration
	retryable   func(error) bool
	clock       clock.Clock
	first, last time.Time
}

// NewRetryWithDeadline retries errors for which isRetryable is true for up to
// maxRetryDuration since the first of a run (never, if that is not above zero).
// A run ends when minResetPeriod passes without such an error.
func NewRetryWithDeadline(maxRetryDuration, minResetPeriod time.Duration, isRetryable func(error) bool, clock clock.Clock) RetryWithDeadline {
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

// Cause says what kind of failure something was. Programs may switch on it;
// kinds may be added.
type Cause string

// The kinds of failure.
const (
	CauseExpired         Cause = "expired"           // the version is no longer known (410)
	CauseVersionTooLarge Cause = "version-too-large" // the version is not known yet
	CauseTooManyRequests Cause = "too-many-requests" // 429
	CauseInternal        Cause = "internal-error"    // 500
	CauseUnavailable     Cause = "unavailable"       // 503, server timeouts
	CauseNotFound        Cause = "not-found"         // 404
	CauseForbidden       Cause = "forbidden"         // 403
	CauseUnauthorized    Cause = "unauthorized"      // 401
	CauseRejected        Cause = "rejected"          // 400, 405, 422
	CauseRefused         Cause = "refused"           // connection refused
	CauseUnreachable     Cause = "unreachable"       // no such host, no route, no answer to a dial
	CauseUntrusted       Cause = "untrusted"         // the server's certificate is not trusted
	CauseCredentials     Cause = "credentials"       // ours could not be put on the request
	CauseUnreadable      Cause = "unreadable"        // what answered is no list or watch
	CauseWrongType       Cause = "wrong-type"        // a list has nothing but objects of another type
	CauseTooLarge        Cause = "too-large"         // the answer passed a limit
	CauseStalled         Cause = "stalled"           // nothing came for too long
	CauseCut             Cause = "cut"               // EOF in the middle
	CauseShortWatch      Cause = "short-watch"       // closed at once, without an event
	CauseOverdueWatch    Cause = "overdue-watch"     // half open
	CauseNoBookmark      Cause = "no-bookmark"       // streaming list without its end
	CauseRegression      Cause = "regression"        // a version went backwards
	CauseObject          Cause = "object"            // one object could not be taken
	CauseProcess         Cause = "process"           // the consumer failed
	CauseStore           Cause = "store"             // a foreign store refused
	CauseSlowSource      Cause = "slow-source"       // a call outlives its context
	CauseMisuse          Cause = "misuse"            // the program called wrongly
	CausePanic           Cause = "panic"             // a handler panicked and the process survived
	CauseMutated         Cause = "mutated"           // a shared object was changed
	CauseOther           Cause = "other"
)

// causeStreamCut and causeBadFrame are what package kubeapi puts into the error event
// with which a stream ends that broke; the two packages do not import each other.
const (
	causeStreamCut metav1.CauseType = "WatchStreamCut"
	causeBadFrame  metav1.CauseType = "WatchBadFrame"
)

// causeClientDecoding is what client-go's clients, typed and dynamic, put into the error
// event with which a stream ends that they could not read. Its code is 500, but no server
// has sent it.
const causeClientDecoding metav1.CauseType = "ClientWatchDecoding"

// connectionTexts are in the texts of what ends a stream of HTTP/2 or TLS before its time.
// client-go keeps nothing but the text of it.
var connectionTexts = []string{"stream error", "connection error", "http2: ", "GOAWAY", "unexpected EOF", "tls: ", "read tcp ", "connection reset", "i/o timeout"}

// streamCause is the cause in such an event: a connection that was cut, or a frame that
// cannot be read. Both are answered by a watch from the last version.
func streamCause(err error) Cause {
	for _, text := range connectionTexts {
		if strings.Contains(err.Error(), text) {
			return CauseCut
		}
	}
	return CauseUnreadable
}

// FailureCauser is an optional interface of an error that a source returns: it names its
// kind, one of the Cause constants or another, where nothing else tells it. The errors of
// package kubeapi have it.
type FailureCauser interface {
	error
	FailureCause() string
}

// CauseOf classifies an error as the reflector does.
func CauseOf(err error) Cause {
	if cause, ok := ownCause(err); ok {
		return cause
	}
	switch {
	case isExpiredError(err):
		return CauseExpired
	case isTooLargeVersionError(err):
		return CauseVersionTooLarge
	case apierrors.HasStatusCause(err, causeClientDecoding):
		return streamCause(err)
	case apierrors.IsTooManyRequests(err):
		return CauseTooManyRequests
	case apierrors.IsInternalError(err):
		return CauseInternal
	case apierrors.IsNotFound(err):
		return CauseNotFound
	case apierrors.IsForbidden(err):
		return CauseForbidden
	case apierrors.IsUnauthorized(err):
		return CauseUnauthorized
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return CauseRejected
	case apierrors.IsServiceUnavailable(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err):
		return CauseUnavailable
	case utilnet.IsConnectionRefused(err):
		return CauseRefused
	case apierrors.HasStatusCause(err, causeStreamCut), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), utilnet.IsProbableEOF(err), utilnet.IsHTTP2ConnectionLost(err):
		return CauseCut
	}
	return connectionCause(err)
}

// connectionCause classifies what keeps a source from being asked at all, and what it
// says of itself.
func connectionCause(err error) Cause {
	var known FailureCauser
	var untrusted *tls.CertificateVerificationError
	var dial *net.OpError
	switch {
	case errors.As(err, &known):
		return Cause(known.FailureCause())
	case apierrors.HasStatusCause(err, causeBadFrame), errors.Is(err, http.ErrSchemeMismatch):
		return CauseUnreadable
	case errors.As(err, &untrusted):
		return CauseUntrusted
	case errors.As(err, new(*net.DNSError)), errors.As(err, &dial) && dial.Op == "dial":
		return CauseUnreachable
	}
	return CauseOther
}

// ownCause classifies the errors that this package makes itself: by the outermost,
// for a store's error may have an object's inside.
func ownCause(err error) (Cause, bool) {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch e.(type) {
		case *ProcessError:
			return CauseProcess, true
		case *ObjectError, KeyError:
			return CauseObject, true
		case *StoreError:
			return CauseStore, true
		case *ListTypeError:
			return CauseWrongType, true
		case *RegressionError:
			return CauseRegression, true
		case *VeryShortWatchError:
			return CauseShortWatch, true
		case *SlowSourceError:
			return CauseSlowSource, true
		case *PanicError:
			return CausePanic, true
		case *MutatedObjectError:
			return CauseMutated, true
		case *UnwatchedTypeError:
			return CauseMisuse, true
		}
	}
	switch {
	case errors.Is(err, ErrWatchOverdue):
		return CauseOverdueWatch, true
	case errors.Is(err, ErrNoInitialEventsEnd):
		return CauseNoBookmark, true
	case errors.Is(err, ErrTableList):
		return CauseUnreadable, true
	case errors.Is(err, ErrAlreadyRan):
		return CauseMisuse, true
	case errors.Is(err, ErrHandlerExited):
		return CausePanic, true
	}
	return "", false
}

// isExpiredError: servers before Kubernetes 1.18 say Gone where later ones say
// Expired.
func isExpiredError(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
}

// isTooLargeVersionError knows the three ways in which API servers have said it:
// a typed cause since 1.18.6, the cause's message since 1.17, the status's
// message before.
func isTooLargeVersionError(err error) bool {
	const message = "Too large resource version"
	if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		return true
	}
	var status apierrors.APIStatus
	if !apierrors.IsTimeout(err) || !errors.As(err, &status) {
		return false
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Message == message {
				return true
			}
		}
	}
	return strings.Contains(status.Status().Message, message)
}

// retryAfter is what the server asked for, 0 if nothing. A server timeout is said to ask
// for whatever stands there, and that may be below zero.
func retryAfter(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// pauseForNews is how long to wait at least after a source has said that it does not know
// a version. One that has not come as far yet is given a second, for which API servers ask
// too: a replica that lags may have caught up by then, and is not asked for what is older.
func pauseForNews(cause Cause, err error) time.Duration {
	if cause == CauseVersionTooLarge {
		return max(time.Second, retryAfter(err))
	}
	return retryAfter(err)
}

// answer is what the reflector does about a failure.
type answer int

const (
	// listAgain: pause, then list at no older than the last version.
	listAgain answer = iota
	// listAfterNews: listAgain, without a pause if there has just been one.
	listAfterNews
	// listNewestAfterNews: likewise, but at "".
	listNewestAfterNews
	// listNewest: pause, then list at "".
	listNewest
	// watchAgain: pause, then watch from the last version.
	watchAgain
	// watchAgainAtOnce: watch from the last version.
	watchAgainAtOnce
	// watchThenList: watchAgain, but after a bounded number in a row listAgain.
	watchThenList
	// watchWithDeadline: watchAgain as long as RetryWithDeadline says so.
	watchWithDeadline
)

// mayFailOnce says whether a request that failed so may succeed as it is. The others
// are definite answers.
func mayFailOnce(cause Cause) bool {
	switch cause {
	case CauseExpired, CauseVersionTooLarge, CauseNotFound, CauseForbidden, CauseUnauthorized, CauseRejected, CauseTooLarge,
		CauseUntrusted, CauseCredentials:
		return false
	}
	return true
}

// answerToWatch is the table of answers for a watch that failed, be it the
// request (refused) or the stream.
func answerToWatch(cause Cause, refused bool) answer {
	switch cause {
	case CauseExpired:
		return listAfterNews
	case CauseVersionTooLarge:
		// A source that was restored never comes to the version, or not as the same: to
		// watch again, or to list at no older than it, would be answered likewise.
		return listNewestAfterNews
	case CauseStore:
		return listAgain
	case CauseRegression:
		return listNewest
	case CauseRefused, CauseTooManyRequests, CauseShortWatch:
		// None of these says anything against the version, however often it comes.
		return watchAgain
	case CauseCut:
		// Nor does a connection that is reset before the watch is accepted. A stream that
		// is cut each time may be one that cannot be continued from this version.
		if refused {
			return watchAgain
		}
		return watchThenList
	case CauseOverdueWatch:
		return watchAgainAtOnce
	case CauseInternal:
		return watchWithDeadline
	}
	return watchThenList
}
