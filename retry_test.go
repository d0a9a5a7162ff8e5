package cache

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// rate drives a backoff through rounds that fail at once, for as long as it
// takes, and counts the requests in the first minute and in the fullest window
// of a minute after it. next says which requests the following round makes and
// how it fails.
func rate(random float64, rounds int, next func(round int) (requests []bool, f failure)) (first, later int) {
	b := newBackoff(nil, 0, func() float64 { return random })
	start := time.Unix(1_000_000, 0)
	now := start
	var times []time.Time
	for round := range rounds {
		requests, f := next(round)
		for _, list := range requests {
			now = now.Add(b.delay(now, 1))
			b.recordRequest(now, list)
			times = append(times, now)
		}
		f.began = now
		now = now.Add(b.pause(now, f))
	}
	return perMinute(start, times)
}

var (
	watchOnly    = []bool{false}
	listOnly     = []bool{true}
	listAndWatch = []bool{true, false}
)

// G13: the limits hold in arithmetic, for every mixture of what a round asks and
// at both ends of the jitter. Fails if delay returns 0 or counts wrongly.
func TestBackoffKeepsTheLimitsWhateverFails(t *testing.T) {
	scripts := map[string]struct {
		next         func(round int) ([]bool, failure)
		first, later int
	}{
		"lists fail": {func(int) ([]bool, failure) { return listOnly, failure{requests: 2} }, 20, 3},
		"watches fail": {func(round int) ([]bool, failure) {
			if round == 0 {
				return listAndWatch, failure{requests: 1}
			}
			return watchOnly, failure{requests: 1}
		}, 20, 3},
		"every list is good and its watch fails": {func(int) ([]bool, failure) { return listAndWatch, failure{requests: 2} }, 20, 3},
		"three requests a round":                 {func(int) ([]bool, failure) { return []bool{true, true, false}, failure{requests: 2} }, 20, 3},
		"lists and watches alternate": {func(round int) ([]bool, failure) {
			if round%2 == 0 {
				return listAndWatch, failure{requests: 1}
			}
			return watchOnly, failure{requests: 2}
		}, 20, 3},
		"watches close after progress": {func(round int) ([]bool, failure) {
			if round == 0 {
				return listAndWatch, failure{requests: 1, progress: true}
			}
			return watchOnly, failure{requests: 1, progress: true}
		}, 20, 11},
		"progress and failure alternate": {func(round int) ([]bool, failure) {
			return watchOnly, failure{requests: 1, progress: round%2 == 0}
		}, 20, 3},
	}
	for name, script := range scripts {
		for _, random := range []float64{0, 0.5, 0.999} {
			first, later := rate(random, 200, script.next)
			assert.LessOrEqual(t, first, script.first, "%s, jitter %v: first minute", name, random)
			assert.LessOrEqual(t, later, script.later, "%s, jitter %v: later minute", name, random)
			assert.GreaterOrEqual(t, later, 1, "%s, jitter %v: never gives up", name, random)
		}
	}
}

// G1: no pause of the default backoff is longer than a minute, so a source that
// recovers is asked again within one. Fails if the backoff's cap or the limits' window
// is longer.
func TestNoPauseIsLongerThanAMinute(t *testing.T) {
	for _, requests := range []int{1, 2} {
		b := newBackoff(nil, 0, func() float64 { return 0.999 })
		now := time.Unix(0, 0)
		for range 100 {
			for range requests {
				b.recordRequest(now, requests == 2)
			}
			pause := b.pause(now, failure{began: now, requests: requests})
			require.LessOrEqual(t, pause, time.Minute)
			now = now.Add(pause)
		}
	}
}

// B26: the default pauses, one request after each. Fails if one of them, or the
// jitter, is another.
func TestBackoffIsQuickForAMinuteAndGrowsAfterwards(t *testing.T) {
	const steady = 5 * time.Second
	quick := []time.Duration{ // each half as long again, but a second until nine requests were made
		200 * time.Millisecond, 300 * time.Millisecond, 450 * time.Millisecond, 675 * time.Millisecond,
		time.Second, time.Second, time.Second, time.Second, time.Second, 1500 * time.Millisecond, 2250 * time.Millisecond, 3375 * time.Millisecond,
	}
	for random, of := range map[float64]struct {
		quick, steady float64 // by which the jitter multiplies
		want          []time.Duration
	}{
		0: {1, 1, slices.Concat(quick, slices.Repeat([]time.Duration{steady}, 8), []time.Duration{limitMinute - 53750*time.Millisecond},
			[]time.Duration{steady * 3 / 2, steady * 9 / 4, steady * 27 / 8, steady * 81 / 16, longestPause, longestPause})},
		0.5: {0.75, 1.125, slices.Concat(quick, slices.Repeat([]time.Duration{steady}, 9),
			[]time.Duration{steady * 3 / 2, steady * 9 / 4, steady * 27 / 8, steady * 81 / 16, longestPause, longestPause})},
	} {
		b := newBackoff(nil, 0, func() float64 { return random })
		now := time.Unix(0, 0)
		for i, pause := range of.want {
			factor := of.steady
			if pause < steady {
				factor = of.quick
			}
			got := b.pause(now, failure{began: now, requests: 1})
			assert.InDelta(t, float64(pause)*factor, float64(got), 10, "pause %d, jitter %v", i, random)
			now = now.Add(got)
			if now.Before(time.Unix(0, 0).Add(limitMinute)) { // later, the limit would stretch each pause
				b.recordRequest(now, false)
			}
		}
	}
}

func TestBackoffStartsOverOnlyAfterTwoQuietMinutes(t *testing.T) {
	b := newBackoff(nil, 0, func() float64 { return 0 })
	now := time.Unix(0, 0)
	fail := func() time.Duration {
		pause := b.pause(now, failure{began: now, requests: 1})
		now = now.Add(pause)
		return pause
	}
	assert.Equal(t, 200*time.Millisecond, fail())
	now = now.Add(2*time.Minute - time.Nanosecond)
	assert.Equal(t, 300*time.Millisecond, fail(), "not yet quiet for two minutes")
	now = now.Add(2 * time.Minute)
	assert.Equal(t, 200*time.Millisecond, fail(), "quiet for two minutes")
}

func TestALongPauseDoesNotCountAsHealthy(t *testing.T) {
	b := newBackoff(nil, 0, func() float64 { return 0 })
	now := time.Unix(0, 0)
	pause := b.pause(now, failure{began: now, requests: 1, retryAfter: 4 * time.Minute})
	assert.Equal(t, 4*time.Minute, pause)
	now = now.Add(pause)
	assert.Equal(t, 300*time.Millisecond, b.pause(now, failure{began: now, requests: 1}))
}

func TestRetryAfterIsHonouredUpToFiveMinutes(t *testing.T) {
	b := newBackoff(nil, 0, func() float64 { return 0 })
	now := time.Unix(0, 0)
	assert.Equal(t, 20*time.Second, b.pause(now, failure{began: now, requests: 1, retryAfter: 20 * time.Second}))
	assert.Equal(t, 5*time.Minute, b.pause(now, failure{began: now, requests: 1, retryAfter: time.Hour}))
}

func TestAConfiguredBackoffIsUsedUnchangedAndNotLimited(t *testing.T) {
	b := newBackoff(&wait.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 1}, time.Second, func() float64 { return 0 })
	now := time.Unix(0, 0)
	for range 1000 {
		b.recordRequest(now, false)
		require.Equal(t, time.Millisecond, b.pause(now, failure{began: now, requests: 1}))
		now = now.Add(time.Millisecond)
	}
}

func TestTheListBeforeAFailedWatchBelongsToTheRunOfFailures(t *testing.T) {
	start := time.Unix(0, 0)
	watch := start.Add(40 * time.Second) // the list took so long
	lived := watch.Add(5 * time.Minute)
	for failed, want := range map[time.Time]time.Time{watch: start, lived: lived} {
		b := newBackoff(nil, 0, func() float64 { return 0 })
		b.recordRequest(start, true)
		b.recordRequest(watch, false)
		b.recordFailure(failed, failure{began: failed})
		assert.Equal(t, want, b.seriesStart)
	}
}

// FuzzBackoff drives a backoff with arbitrary failures that follow each other at
// once: pauses are never negative, never above the longest one promised, and the
// limits hold, the narrow ones where nothing was progress.
func FuzzBackoff(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, byte(0))
	f.Add([]byte{255, 128, 64, 32, 16, 8, 4, 2, 1}, byte(255))
	f.Fuzz(func(t *testing.T, script []byte, jitter byte) {
		b := newBackoff(nil, 0, func() float64 { return float64(jitter) / 256 })
		now := time.Unix(1_000_000, 0)
		start := now
		var times []time.Time
		progress := false
		for _, op := range script {
			requests := 1 + int(op&1)
			progress = progress || op&4 != 0
			for i := range requests {
				now = now.Add(b.delay(now, 1))
				b.recordRequest(now, requests == 2 && i == 0)
				times = append(times, now)
			}
			fail := failure{began: now, requests: 1 + int(op>>1&1), progress: op&4 != 0}
			if op&8 != 0 {
				fail.retryAfter = time.Duration(op) * time.Second
			}
			pause := b.pause(now, fail)
			if pause < 0 || pause > maxRetryAfter {
				t.Fatalf("pause %s", pause)
			}
			if fail.retryAfter > pause {
				t.Fatalf("pause %s is shorter than Retry-After %s", pause, fail.retryAfter)
			}
			now = now.Add(pause)
		}
		allowed := failingLimit
		if progress {
			allowed = progressLimit
		}
		first, later := perMinute(start, times)
		if first > firstMinuteLimit || later > allowed {
			t.Fatalf("%d requests in the first minute and %d in a later one, progress %v", first, later, progress)
		}
	})
}

// perMinute counts the requests in the first minute and in the fullest window of
// one after it.
func perMinute(start time.Time, times []time.Time) (first, later int) {
	for i, at := range times {
		if at.Sub(start) < time.Minute {
			first++
			continue
		}
		window := 0
		for _, other := range times[i:] {
			if other.Sub(at) < time.Minute {
				window++
			}
		}
		later = max(later, window)
	}
	return first, later
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
	expired410 := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonGone, Code: 410}}
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
		CauseExpired: {apierrors.NewResourceExpired(""), expired410},
		CauseVersionTooLarge: {
			cachetest.ErrTooLargeResourceVersion(2, 1),
			timeout(func(s *metav1.Status) {
				s.Details.Causes = []metav1.StatusCause{{Message: "Too large resource version"}}
			}),
			timeout(func(s *metav1.Status) {
				s.Message, s.Details = "Timeout: Too large resource version: 9, current: 1", nil
			}),
		},
		CauseTooManyRequests:   {apierrors.NewTooManyRequests("", 1)},
		CauseInternal:          {apierrors.NewInternalError(errBoom)},
		CauseUnavailable:       {apierrors.NewServiceUnavailable(""), apierrors.NewTimeoutError("", 1), apierrors.NewServerTimeout(pods, "list", 1)},
		CauseNotFound:          {apierrors.NewNotFound(pods, "")},
		CauseForbidden:         {apierrors.NewForbidden(pods, "", errBoom)},
		CauseUnauthorized:      {apierrors.NewUnauthorized("")},
		CauseBadRequest:        {apierrors.NewBadRequest(""), apierrors.NewMethodNotSupported(pods, "list")},
		CauseConnectionRefused: {cachetest.ErrConnectionRefused()},
		CauseConnectionLost: {io.EOF, io.ErrUnexpectedEOF, &url.Error{Op: "Get", URL: "u", Err: io.EOF}, cut,
			decoding("stream error: stream ID 3; INTERNAL_ERROR; received from peer"), decoding("http2: client connection lost"),
			decoding("http2: client connection force closed via ClientConn.Close"), decoding("connection error: PROTOCOL_ERROR"),
			decoding("read tcp 10.0.0.1:1->10.0.0.2:2: read: no route to host"), decoding("local error: tls: bad record MAC")},
		causeStream:        {eventError(&apierrors.NewInternalError(errBoom).ErrStatus)},
		causeShortWatch:    {&VeryShortWatchError{}},
		CauseOverdueWatch:  {errWatchOverdue},
		causeNoBookmark:    {errNoInitialEventsEnd},
		causeRegression:    {&VersionRegressionError{}},
		causeWrongType:     {&ListTypeError{Err: &UnexpectedTypeError{}}, fmt.Errorf("listing x: %w", &ListTypeError{Err: errBoom})},
		causeInvalidObject: {&ObjectError{Err: errBoom}, &ObjectError{Stage: stageDecode}, KeyError{Obj: nil, Err: errBoom}},
		causeTransform:     {&ObjectError{Stage: stageTransform, Err: io.EOF}},
		causeIndex:         {&ObjectError{Stage: stageIndex, Err: apierrors.NewUnauthorized("")}},
		causeHandlerError:  {&ProcessError{Err: &ObjectError{}}},
		causeStoreError:    {&StoreError{Err: apierrors.NewInternalError(errBoom)}},
		causeSlowSource:    {&SlowSourceError{}},
		causeMisuse:        {ErrAlreadyRan, caused{errBoom, causeMisuse}},
		causePanic:         {&PanicError{Value: "x"}, fmt.Errorf("handler h: %w", errHandlerExited)},
		causeMutated:       {&MutatedObjectError{Key: "a/b"}},
		CauseUnreachable:   {&url.Error{Op: "Get", URL: "u", Err: &net.DNSError{IsNotFound: true}}, &net.OpError{Op: "dial", Err: errBoom}},
		CauseTLS:           {&tls.CertificateVerificationError{Err: errBoom}},
		CauseCredentials:   {kubeapi.ErrAuthorize},
		CauseInvalidResponse: {kubeapi.ErrMalformed, kubeapi.ErrNotList, kubeapi.ErrContentType, kubeapi.ErrRedirect, http.ErrSchemeMismatch, badFrame,
			decoding("unable to decode watch event: no kind \"Cod\" is registered"), decoding("invalid character 'x' looking for beginning of value")},
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

// FuzzCauses classifies what a server may answer, as it is and wrapped, and asks what is
// done then: every answer has a cause of the known ones, the same on each way in (but a 500 of a
// request and one of an open watch are two) and each time; a pause that a server asks for is never one of another length.
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
		inEvent := is
		if is == CauseInternal {
			inEvent = causeStream
		}
		require.Equal(t, inEvent, CauseOf(eventError(&err.ErrStatus)))
		require.Equal(t, causeStoreError, CauseOf(&StoreError{Op: "Add", Err: err}))
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
	CauseUnauthorized, CauseBadRequest, CauseConnectionLost, CauseInvalidResponse, CauseConnectionRefused, CauseOther,
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
	assert.EqualError(t, &VersionRegressionError{Kind: "event", Key: "a", Current: "9", Received: "8"},
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
	for _, err := range []error{KeyError{secret, errBoom}, fmt.Errorf("adding: %w", KeyError{secret, errBoom})} {
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
		&object{}, new(*object), struct{}{}, object{}, 0, "", list, keys, call, stream, map[string]int{}, [1]*object{}, struct{ *object }{},
	} {
		assert.False(t, isNilPointer(obj), "%T", obj)
	}
}
