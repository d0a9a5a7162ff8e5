package cache

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// S10.
func TestRetryWithDeadlineRetriesUntilTheDeadlineOfARunOfErrors(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	internal := cachetest.ErrInternal()
	retry := NewRetryWithDeadline(10*time.Second, time.Minute, apierrors.IsInternalError, clock)

	retry.After(internal)
	assert.True(t, retry.ShouldRetry())
	clock.Step(10 * time.Second)
	retry.After(internal)
	assert.True(t, retry.ShouldRetry(), "at the deadline")
	clock.Step(time.Nanosecond)
	retry.After(errBoom)
	retry.After(nil)
	assert.False(t, retry.ShouldRetry(), "past it, and other errors do not count")
	retry.After(internal)
	assert.True(t, retry.ShouldRetry(), "the next error starts a new run")

	clock.Step(59 * time.Second)
	retry.After(internal)
	assert.False(t, retry.ShouldRetry(), "59 s later it is still the same run")
	retry.After(internal)
	clock.Step(time.Minute)
	retry.After(internal)
	assert.True(t, retry.ShouldRetry(), "a quiet minute ends a run")
}

func TestRetryWithDeadlineNeverRetriesWithoutADuration(t *testing.T) {
	for _, longest := range []time.Duration{0, -time.Second} {
		retry := NewRetryWithDeadline(longest, time.Minute, apierrors.IsInternalError, testclock.NewFakeClock(time.Unix(0, 0)))
		retry.After(cachetest.ErrInternal())
		assert.False(t, retry.ShouldRetry())
	}
}

// S11: every class, also where the error is wrapped, and the ways in which old
// servers said "too large resource version".
func TestErrorsAreClassified(t *testing.T) {
	timeout := func(change func(*metav1.Status)) error {
		err := apierrors.NewTimeoutError("", 1)
		change(&err.ErrStatus)
		return err
	}
	// What servers before Kubernetes 1.18 answer.
	gone := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone, Code: 410}}
	cut := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: "WatchStreamCut"}},
	}}}
	badFrame := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: kubeapi.CauseBadFrame}},
	}}}
	// What client-go's clients make of a stream that they cannot read.
	decoding := func(text string) error {
		const prefix = "unable to decode an event from the watch stream: "
		reporter := apierrors.NewClientErrorReporter(http.StatusInternalServerError, "GET", "ClientWatchDecoding")
		return apierrors.FromObject(reporter.AsObject(errors.New(prefix + text)))
	}
	rows := map[Cause][]error{
		CauseExpired: {apierrors.NewResourceExpired(""), gone},
		CauseVersionTooLarge: {
			cachetest.ErrTooLargeResourceVersion(2, 1),
			timeout(func(s *metav1.Status) {
				s.Details.Causes = []metav1.StatusCause{{Message: "Too large resource version"}}
			}),
			timeout(func(s *metav1.Status) {
				s.Message, s.Details = "Timeout: Too large resource version: 9, current: 1", nil
			}),
		},
		CauseTooManyRequests: {apierrors.NewTooManyRequests("", 1)},
		CauseInternal:        {apierrors.NewInternalError(errBoom)},
		CauseUnavailable:     {apierrors.NewServiceUnavailable(""), apierrors.NewTimeoutError("", 1), apierrors.NewServerTimeout(pods, "list", 1)},
		CauseNotFound:        {apierrors.NewNotFound(pods, "")},
		CauseForbidden:       {apierrors.NewForbidden(pods, "", errBoom)},
		CauseUnauthorized:    {apierrors.NewUnauthorized("")},
		CauseRejected:        {apierrors.NewBadRequest(""), apierrors.NewMethodNotSupported(pods, "list")},
		CauseRefused:         {cachetest.ErrConnectionRefused()},
		CauseCut: {io.EOF, io.ErrUnexpectedEOF, &url.Error{Op: "Get", URL: "u", Err: io.EOF}, cut,
			decoding("stream error: stream ID 3; INTERNAL_ERROR; received from peer"), decoding("http2: client connection lost"),
			decoding("http2: client connection force closed via ClientConn.Close"), decoding("connection error: PROTOCOL_ERROR"),
			decoding("read tcp 10.0.0.1:1->10.0.0.2:2: read: no route to host"), decoding("local error: tls: bad record MAC")},
		CauseShortWatch:   {&VeryShortWatchError{}},
		CauseOverdueWatch: {ErrWatchOverdue},
		CauseNoBookmark:   {ErrNoInitialEventsEnd},
		CauseRegression:   {&RegressionError{}},
		CauseWrongType:    {&ListTypeError{Err: &UnexpectedTypeError{}}, fmt.Errorf("listing x: %w", &ListTypeError{Err: errBoom})},
		CauseObject:       {&ObjectError{Err: errBoom}, KeyError{nil, errBoom}},
		CauseProcess:      {&ProcessError{Err: &ObjectError{}}},
		CauseStore:        {&StoreError{Err: apierrors.NewInternalError(errBoom)}},
		CauseSlowSource:   {&SlowSourceError{}},
		CauseMisuse:       {ErrAlreadyRan, &UnwatchedTypeError{Type: "x"}},
		CausePanic:        {&PanicError{Value: "x"}, fmt.Errorf("handler h: %w", ErrHandlerExited)},
		CauseMutated:      {&MutatedObjectError{Key: "a/b"}},
		CauseUnreachable:  {&url.Error{Op: "Get", URL: "u", Err: &net.DNSError{IsNotFound: true}}, &net.OpError{Op: "dial", Err: errBoom}},
		CauseUntrusted:    {&tls.CertificateVerificationError{Err: errBoom}},
		CauseCredentials:  {kubeapi.ErrAuthorize},
		CauseUnreadable: {ErrTableList, kubeapi.ErrMalformed, kubeapi.ErrNotList, kubeapi.ErrContentType, kubeapi.ErrRedirect, http.ErrSchemeMismatch, badFrame,
			decoding("unable to decode watch event: no kind \"Cod\" is registered"), decoding("invalid character 'x' looking for beginning of value")},
		CauseTooLarge: {kubeapi.ErrTooLarge, &kubeapi.LimitError{}},
		CauseStalled:  {kubeapi.ErrStalled},
		CauseOther:    {errBoom, &net.OpError{Op: "read", Err: errBoom}},
	}
	for cause, errs := range rows {
		for _, err := range errs {
			assert.Equal(t, cause, CauseOf(err), "%v", err)
			assert.Equal(t, cause, CauseOf(fmt.Errorf("listing: %w", err)), "wrapped %v", err)
		}
	}
}

// FuzzCauses classifies what a server may answer, as it is and wrapped, and asks what is
// done then: every answer has a cause of the known ones, the same on each way in and each
// time; a pause that a server asks for is never one of another length.
func FuzzCauses(f *testing.F) {
	f.Add(int32(410), "Expired", "", "", int32(0), "")
	f.Add(int32(504), "Timeout", "Too large resource version: 3", "ResourceVersionTooLarge", int32(1), "")
	f.Add(int32(429), "TooManyRequests", "", "", int32(300), "")
	f.Add(int32(0), "", "", "WatchStreamCut", int32(-1), "EOF")
	f.Fuzz(func(t *testing.T, code int32, reason, message, cause string, seconds int32, causeMessage string) {
		err := &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: code, Reason: metav1.StatusReason(reason), Message: message,
			Details: &metav1.StatusDetails{RetryAfterSeconds: seconds, Causes: []metav1.StatusCause{{Type: metav1.CauseType(cause), Message: causeMessage}}},
		}}
		is := CauseOf(err)
		require.Contains(t, serverCauses, is)
		require.Equal(t, is, CauseOf(errors.Join(err)))
		require.Equal(t, is, CauseOf(eventError(&err.ErrStatus)))
		require.Equal(t, CauseStore, CauseOf(&StoreError{Op: "Add", Err: err}))
		if reason != "" || code != 410 && code != 429 {
			expired := reason == string(metav1.StatusReasonExpired) || reason == string(metav1.StatusReasonGone)
			require.True(t, !expired || is == CauseExpired, "%s", is)
		}
		pause := retryAfter(err)
		require.True(t, pause == 0 || int64(pause) == int64(seconds)*1e9 || is == CauseVersionTooLarge && pause == time.Second, "%s of %d s", pause, seconds)
		require.GreaterOrEqual(t, pause.Seconds(), 0.0)
	})
}

// serverCauses are the causes that a Status can have.
var serverCauses = []Cause{
	CauseExpired, CauseVersionTooLarge, CauseTooManyRequests, CauseInternal, CauseUnavailable, CauseNotFound, CauseForbidden,
	CauseUnauthorized, CauseRejected, CauseCut, CauseUnreadable, CauseRefused, CauseOther,
}
