package cache

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi"
)

// S11: every class, also where the error is wrapped, and the ways in which old
// servers said "too large resource version".
func TestErrorsAreClassified(t *testing.T) {
	timeout := func(change func(*metav1.Status)) error {
		err := apierrors.NewTimeoutError("", 1)
		change(&err.ErrStatus)
		return err
	}
	// What servers before Kubernetes 1.18 answer.
	expired410 := &apierrors.StatusError{
		ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone, Code: 410},
	}
	cut := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: "WatchStreamCut"}},
	}}}
	badFrame := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: kubeapi.CauseBadFrame}},
	}}}
	// What client-go's clients make of a stream that they cannot read.
	decoding := func(text string) error {
		const prefix = "unable to decode an event from the watch stream: "
		reporter := apierrors.NewClientErrorReporter(
			http.StatusInternalServerError, "GET", "ClientWatchDecoding")
		return apierrors.FromObject(reporter.AsObject(errors.New(prefix + text)))
	}
	rows := map[Cause][]error{
		CauseExpired: {apierrors.NewResourceExpired(""), expired410},
		CauseVersionTooLarge: {
			timeout(func(s *metav1.Status) {
				s.Details.Causes = []metav1.StatusCause{
					{Type: metav1.CauseTypeResourceVersionTooLarge},
				}
			}),
			timeout(func(s *metav1.Status) {
				s.Details.Causes = []metav1.StatusCause{{Message: "Too large resource version"}}
			}),
			timeout(func(s *metav1.Status) {
				s.Message = "Timeout: Too large resource version: 9, current: 1"
				s.Details = nil
			}),
			apierrors.NewInternalError(errors.New("Too large resource version: 9, current: 1")),
		},
		CauseTooManyRequests: {apierrors.NewTooManyRequests("", 1)},
		CauseInternal:        {apierrors.NewInternalError(errBoom)},
		CauseUnavailable: {
			apierrors.NewServiceUnavailable(""), apierrors.NewTimeoutError("", 1),
			apierrors.NewServerTimeout(pods, "list", 1),
		},
		CauseNotFound:     {apierrors.NewNotFound(pods, "")},
		CauseForbidden:    {apierrors.NewForbidden(pods, "", errBoom)},
		CauseUnauthorized: {apierrors.NewUnauthorized("")},
		CauseBadRequest: {
			apierrors.NewBadRequest(""), apierrors.NewMethodNotSupported(pods, "list"),
		},
		CauseConnectionRefused: {&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}},
		CauseConnectionLost: {
			io.EOF,
			io.ErrUnexpectedEOF,
			&url.Error{Op: "Get", URL: "u", Err: io.EOF},
			cut,
			decoding("stream error: stream ID 3; INTERNAL_ERROR; received from peer"),
			decoding("http2: client connection lost"),
			decoding("http2: client connection force closed via ClientConn.Close"),
			decoding("connection error: PROTOCOL_ERROR"),
			decoding(
				"read tcp 10.0.0.1:1->10.0.0.2:2: read: no route to host"),
			decoding("local error: tls: bad record MAC"),
		},
		causeStream:       {eventError(&apierrors.NewInternalError(errBoom).ErrStatus)},
		causeShortWatch:   {&VeryShortWatchError{}},
		CauseOverdueWatch: {errWatchOverdue},
		causeNoBookmark:   {errNoInitialEventsEnd},
		causeRegression:   {&VersionRegressionError{}},
		causeWrongType: {
			&ListTypeError{Err: &UnexpectedTypeError{}},
			fmt.Errorf("listing x: %w", &ListTypeError{Err: errBoom}),
		},
		causeInvalidObject: {
			&ObjectError{Err: errBoom}, &ObjectError{Stage: stageDecode},
			KeyError{Obj: nil, Err: errBoom},
		},
		causeTransform:    {&ObjectError{Stage: stageTransform, Err: io.EOF}},
		causeIndex:        {&ObjectError{Stage: stageIndex, Err: apierrors.NewUnauthorized("")}},
		causeHandlerError: {&ProcessError{Err: &ObjectError{}}},
		causeStoreError:   {&StoreError{Err: apierrors.NewInternalError(errBoom)}},
		causeSlowSource:   {&SlowSourceError{}},
		causeMisuse:       {ErrAlreadyRan, caused{errBoom, causeMisuse}},
		causePanic: {
			&PanicError{Value: "x"}, fmt.Errorf("handler h: %w", errHandlerExited),
		},
		causeMutated: {&MutatedObjectError{Key: "a/b"}},
		CauseUnreachable: {
			&url.Error{Op: "Get", URL: "u", Err: &net.DNSError{IsNotFound: true}},
			&net.OpError{Op: "dial", Err: errBoom},
		},
		CauseTLS: {
			&tls.CertificateVerificationError{Err: errBoom},
			tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
			&net.OpError{Op: "remote error", Err: errBoom},
			&net.OpError{Op: "local error", Err: errBoom},
		},
		CauseCredentials: {kubeapi.ErrAuthorize},
		CauseInvalidResponse: {
			kubeapi.ErrMalformed,
			kubeapi.ErrNotList,
			kubeapi.ErrContentType,
			kubeapi.ErrRedirect,
			http.ErrSchemeMismatch,
			badFrame,
			decoding(
				"unable to decode watch event: no kind \"Cod\" is registered"),
			decoding("invalid character 'x' looking for beginning of value"),
		},
		CauseResponseTooLarge: {kubeapi.ErrTooLarge, &kubeapi.LimitError{}},
		CauseStalled:          {kubeapi.ErrStalled},
		CauseOther:            {errBoom, &net.OpError{Op: "read", Err: errBoom}},
	}
	for cause, errs := range rows {
		for _, err := range errs {
			assert.Equal(t, cause, CauseOf(err), "%v", err)
			assert.Equal(t, cause, CauseOf(fmt.Errorf("listing: %w", err)), "wrapped %v", err)
		}
	}
}

// FuzzCauses classifies what a server may answer, as it is and wrapped, and asks what is done then:
// every answer has a cause of the known ones, the same on each way in (but a 500 of a request and
// one of an open watch are two) and each time; a pause that a server asks for is never one of
// another length.
func FuzzCauses(f *testing.F) {
	f.Add(int32(410), "Expired", "", "", int32(0), "")
	f.Add(
		int32(504), "Timeout", "Too large resource version: 3", "ResourceVersionTooLarge", int32(1),
		"")
	f.Add(int32(429), "TooManyRequests", "", "", int32(300), "")
	f.Add(int32(0), "", "", "WatchStreamCut", int32(-1), "EOF")
	f.Fuzz(
		func(t *testing.T, code int32, reason, message, cause string, seconds int32, causeMessage string) {
			err := &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: code, Reason: metav1.StatusReason(reason),
				Message: message,
				Details: &metav1.StatusDetails{
					RetryAfterSeconds: seconds,
					Causes: []metav1.StatusCause{
						{Type: metav1.CauseType(cause), Message: causeMessage},
					},
				},
			}}
			is := CauseOf(err)
			require.Contains(t, serverCauses, is)
			require.Equal(t, is, CauseOf(errors.Join(err)))
			inEvent := is
			if is == CauseInternal {
				inEvent = causeStream
			}
			require.Equal(t, inEvent, CauseOf(eventError(&err.ErrStatus)))
			require.Equal(t, causeStoreError, CauseOf(&StoreError{Op: "Add", Err: err}))
			if reason != "" || code != 410 && code != 429 {
				expired := reason == string(metav1.StatusReasonExpired) ||
					reason == string(metav1.StatusReasonGone)
				require.True(t, !expired || is == CauseExpired, "%s", is)
			}
			pause := retryAfter(err)
			require.True(
				t,
				pause == 0 || int64(pause) == int64(seconds)*1e9 ||
					is == CauseVersionTooLarge && pause == time.Second,
				"%s of %d s",
				pause,
				seconds,
			)
			require.GreaterOrEqual(t, pause.Seconds(), 0.0)
		},
	)
}

// serverCauses are the causes that a Status can have.
var serverCauses = []Cause{
	CauseExpired, CauseVersionTooLarge, CauseTooManyRequests, CauseInternal, CauseUnavailable,
	CauseNotFound, CauseForbidden,
	CauseUnauthorized, CauseBadRequest, CauseConnectionLost, CauseInvalidResponse,
	CauseConnectionRefused, CauseOther,
}

// Errors name the key, the version and the cause, never the object, and lead to
// their causes.
func TestErrorsNameTheKeyAndLeadToTheirCause(t *testing.T) {
	secret := labelled(pod("ns", "n"), "secret-content")
	errs := map[error]string{
		KeyError{secret, errBoom}: `"ns/n"`,
		&ObjectError{Key: "ns/n", ResourceVersion: "7", Stage: "index", Err: errBoom}: `"ns/n" at version 7`,
		&StoreError{Op: "Add", Name: "ns/n", Err: errBoom}:                            `Add of "ns/n"`,
		&ProcessError{Keys: []string{"ns/n"}, Changes: 12, Err: errBoom}:              `["ns/n"] and others, 12 changes`,
		&PanicError{Value: errBoom}:                                                   "panic: boom",
	}
	for err, want := range errs {
		assert.ErrorContains(t, err, want)
		assert.ErrorIs(t, err, errBoom)
		assert.NotContains(t, err.Error(), "secret-content")
	}
	assert.EqualError(
		t, &VersionRegressionError{Kind: "event", Key: "a", Current: "9", Received: "8"},
		`resource version went backwards: event of "a" at 8, have 9`)
	assert.EqualError(t, &UnexpectedTypeError{Expected: "A", Actual: "B"}, "expected A, got B")
	assert.Contains(t, (&SlowSourceError{Op: "List", Waited: slowSource}).Error(), "List")
	assert.Nil(t, errors.Unwrap(&PanicError{Value: "no error"}))
	assert.Contains(t, (&PanicError{Value: 1, Stack: []byte("the stack")}).Error(), "the stack")
	for obj, want := range map[any]string{
		nil:                                "nil",
		(*object)(nil):                     "nil *v1.PartialObjectMetadata",
		pod("a", "b"):                      `*v1.PartialObjectMetadata "a/b"`,
		7:                                  "int",
		pod("", ""):                        "*v1.PartialObjectMetadata",
		DeletedFinalStateUnknown{Key: "k"}: `tombstone "k"`,
	} {
		assert.Equal(t, want, describe(obj))
	}
}

// An error that is kept holds no object: a KeyError is kept with the name.
func TestErrorsThatAreKeptHoldNoObject(t *testing.T) {
	secret := labelled(pod("a", "1"), "secret-content")
	for _, err := range []error{
		KeyError{secret, errBoom}, fmt.Errorf("adding: %w", KeyError{secret, errBoom}),
	} {
		var kept KeyError
		require.ErrorAs(t, withoutObject(err), &kept)
		assert.Equal(t, ObjectName{Namespace: "a", Name: "1"}, kept.Obj)
		assert.ErrorIs(t, kept, errBoom)
		assert.Equal(t, kept, withoutObject(kept))
	}
	assert.Equal(t, KeyError{Err: errBoom}, withoutObject(KeyError{7, errBoom}))
	assert.Equal(t, errBoom, withoutObject(errBoom))
	assert.Contains(t, KeyError{ObjectName{Namespace: "a", Name: "1"}, errBoom}.Error(), `"a/1"`)
}

func TestOnlyNilAndNilPointersCountAsNil(t *testing.T) {
	var (
		list   []int
		keys   map[string]int
		call   func()
		stream chan int
	)
	for _, obj := range []any{nil, (*object)(nil), (**object)(nil)} {
		assert.True(t, isNilPointer(obj), "%T", obj)
	}
	for _, obj := range []any{
		&object{}, new(*object), struct{}{}, object{}, 0, "", list, keys, call, stream,
		map[string]int{}, [1]*object{}, struct{ *object }{},
	} {
		assert.False(t, isNilPointer(obj), "%T", obj)
	}
}
