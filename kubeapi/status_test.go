package kubeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/apiclient"
)

func statusJSON(code, reason, more string) string {
	return `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"said so","reason":"` + reason + `","code":` + code + more + `}`
}

// refusals are responses to either call, each with the check that callers would make.
var refusals = map[string]struct {
	code    int
	body    string
	headers []string
	is      func(error) bool
	text    string
}{
	"expired with Status": {
		410, statusJSON("410", "Expired", ""), nil, apierrors.IsResourceExpired, "said so",
	},
	"Gone with Status": {
		410, statusJSON("410", "Gone", ""), nil, apierrors.IsGone, "said so",
	},
	"expired without Status": {
		410, "too old", []string{"Content-Type", "text/plain"}, apierrors.IsResourceExpired, "410",
	},
	"too many requests, Status": {
		429, statusJSON("429", "TooManyRequests", ""), nil, apierrors.IsTooManyRequests, "said so",
	},
	"too many requests": {
		429, "", nil, apierrors.IsTooManyRequests, "429 Too Many Requests: empty body",
	},
	"unauthorized with Status": {
		401, statusJSON("401", "Unauthorized", ""), nil, apierrors.IsUnauthorized, "said so",
	},
	"unauthorized, HTML": {
		401, "<html>log in</html>", []string{"Content-Type", "text/html"}, apierrors.IsUnauthorized,
		"401 Unauthorized: an HTML page",
	},
	"forbidden with Status": {
		403, statusJSON("403", "Forbidden", ""), nil, apierrors.IsForbidden, "said so",
	},
	"forbidden, text": {
		403, "not\n\x1byou", []string{"Content-Type", "text/plain"}, apierrors.IsForbidden,
		"not you",
	},
	"forbidden, HTML": {
		403, "<html>", []string{"Content-Type", "text/html; charset=utf-8"}, apierrors.IsForbidden,
		"an HTML page",
	},
	"forbidden, binary": {
		403, "\x00", []string{"Content-Type", "image/png"}, apierrors.IsForbidden,
		"a body of type image/png",
	},
	"forbidden, nothing": {403, "", nil, apierrors.IsForbidden, "empty body"},
	"not found with Status": {
		404, statusJSON("404", "NotFound", ""), nil, apierrors.IsNotFound, "said so",
	},
	"not found, Go's mux": {
		404, "404 page not found\n", []string{"Content-Type", "text/plain"}, apierrors.IsNotFound,
		"404 Not Found: 404 page not found",
	},
	"unavailable": {
		503, "upstream", []string{"Content-Type", ""}, apierrors.IsServiceUnavailable,
		"503 Service Unavailable: upstream",
	},
	"internal": {
		500, "oops", []string{"Content-Type", "text/plain"}, apierrors.IsInternalError, "oops",
	},
	"bad gateway": {
		502, "<html>", []string{"Content-Type", "text/html"}, apierrors.IsInternalError,
		"an HTML page",
	},
	"Status without code": {
		403, `{"kind":"Status","status":"Failure","message":"said so"}`, nil, apierrors.IsForbidden,
		"said so",
	},
	"code of a success": {
		403, statusJSON("200", "", ""), nil, apierrors.IsForbidden, "said so",
	},
	"code of a redirect": {
		404, statusJSON("302", "", ""), nil, apierrors.IsNotFound, "said so",
	},
	"negative code": {
		404, statusJSON("-1", "", ""), nil, apierrors.IsNotFound, "said so",
	},
	"Status of another group": {
		404, `{"kind":"Status","apiVersion":"x/v1","status":"Failure","reason":"Expired"}`, nil,
		apierrors.IsNotFound, "404 Not Found",
	},
	"Status of the wrong type": {
		403, statusJSON(`"x"`, "NotFound", ""), nil, apierrors.IsForbidden, `"NotFound"`,
	},
	"Status that claims success": {
		404, `{"kind":"Status","status":"Success","reason":"Expired"}`, nil, apierrors.IsNotFound,
		"404 Not Found",
	},
	"some other object": {
		404, `{"kind":"Pod","reason":"Expired"}`, nil, apierrors.IsNotFound, "404 Not Found",
	},
	"Status larger than is read": {
		404, statusJSON("410", "Expired", strings.Repeat(" ", defaultErrorBytes)), nil,
		apierrors.IsNotFound, "404 Not Found",
	},
	"Status exactly as large": {
		404, pad(statusJSON("410", "Expired", ""), defaultErrorBytes), nil,
		apierrors.IsResourceExpired, "said so",
	},
	"redirect that leads nowhere": {
		304, "", nil,
		func(err error) bool { return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown },
		"304",
	},
}

// pad pads a JSON object to size bytes, which are all needed to read it.
func pad(s string, size int) string {
	return strings.TrimSuffix(s, "}") + strings.Repeat(" ", size-len(s)) + "}"
}

func TestErrorResponsesBecomeAPIErrors(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			source := newSource(t, respondWith(test.code, test.body, test.headers...))
			list, err := source.List(metav1.ListOptions{})
			require.Nil(t, list)
			require.ErrorAs(t, err, new(*apierrors.StatusError))
			require.True(t, test.is(err), "%#v", err)
			require.ErrorContains(t, err, test.text)
			require.NotContains(t, err.Error(), "\x1b")

			events, err := source.Watch(metav1.ListOptions{})
			require.Nil(t, events)
			require.True(t, test.is(err), "%#v", err)
		})
	}
}

// The same Status may arrive with an HTTP code, as the body of a list, and in an ERROR frame. It
// must have the same meaning in all of them.
func TestAStatusMeansTheSameWhereverItComes(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		counts bool
	}{
		"complete": {statusJSON("410", "Expired", ""), true},
		"without apiVersion": {
			`{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}`, true,
		},
		"without apiVersion, status": {`{"kind":"Status","code":410,"reason":"Expired"}`, true},
		"of metav1": {
			`{"kind":"Status","apiVersion":"meta.k8s.io/v1","status":"Failure","code":410,"reason":"Expired"}`,
			true,
		},
		"of another group": {
			`{"kind":"Status","apiVersion":"x/v1","status":"Failure","code":410,"reason":"Expired"}`,
			false,
		},
		"that claims success": {
			`{"kind":"Status","apiVersion":"v1","status":"Success","code":410,"reason":"Expired"}`,
			false,
		},
		"of the wrong form": {
			`{"kind":"Status","apiVersion":"v1","status":{"code":410},"reason":"Expired"}`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, refusal := newSource(t, respondWith(500, test.status)).List(metav1.ListOptions{})
			require.Equal(t, test.counts, apierrors.IsResourceExpired(refusal), "%v", refusal)

			_, body := newSource(t, respondWith(200, test.status)).List(metav1.ListOptions{})
			require.Equal(t, test.counts, apierrors.IsResourceExpired(body), "%v", body)
			require.Equal(t, !test.counts, errors.Is(body, ErrNotList), "%v", body)

			events := watched(t, strings.NewReader(frameJSON("ERROR", test.status)))
			require.Len(t, events, 1)
			frame := apierrors.FromObject(events[0].Object)
			require.Equal(t, test.counts, apierrors.IsResourceExpired(frame), "%v", frame)
			require.Equal(
				t, !test.counts, apierrors.HasStatusCause(frame, CauseBadFrame), "%v", frame)
		})
	}
}

// A Status is printed like an error: in logs and on terminals.
func TestAStatusCarriesNeitherControlCharactersNorALongText(t *testing.T) {
	evil := `\u001b[2J` + strings.Repeat("x", 2*apiclient.MaxStatusText) + `\u009b`
	status := `{"kind":"Status","status":"Failure","code":410,"reason":"\u001b[31m","message":"a\nb` + evil + `",
		"details":{"name":"\u202e","group":"\u0007","kind":"\u001b","uid":"\u001b",
		"causes":[{"reason":"\u001b","message":"` + evil + `","field":"\u001b"}]}}`
	_, refusal := newSource(t, respondWith(410, status)).List(metav1.ListOptions{})
	_, body := newSource(t, respondWith(200, status)).List(metav1.ListOptions{})
	events := watched(t, strings.NewReader(frameJSON("ERROR", status)))
	require.Len(t, events, 1)
	for name, err := range map[string]error{
		"refusal": refusal, "body": body, "frame": apierrors.FromObject(events[0].Object),
	} {
		t.Run(name, func(t *testing.T) {
			failure, ok := errors.AsType[*apierrors.StatusError](err)
			require.True(t, ok, "%v", err)
			require.EqualValues(t, 410, failure.ErrStatus.Code)
			require.True(t, strings.HasPrefix(failure.Error(), "a b [2Jxx"), failure.Error()[:20])
			require.True(t, strings.HasSuffix(failure.Error(), "x…"))
			everything := fmt.Sprintf("%+v", failure.ErrStatus)
			require.Equal(
				t, -1,
				strings.IndexFunc(everything, func(r rune) bool { return !unicode.IsPrint(r) }),
				"%q", everything)
			require.Less(t, len(everything), 3*apiclient.MaxStatusText)
		})
	}
}

// API servers send this message for a resource that they do not serve. The query of the request
// begins with resourceVersion, which is not secret.
func TestAMessageMayEndAsTheQueryBegins(t *testing.T) {
	const message = "the server could not find the requested resource"
	source := newSource(
		t, respondWith(404, statusJSON("404", "NotFound", `,"message":"`+message+`"`)))
	_, err := source.List(metav1.ListOptions{ResourceVersion: "0"})
	require.ErrorContains(t, err, message)
	_, err = source.Watch(metav1.ListOptions{ResourceVersion: "1"})
	require.ErrorContains(t, err, message)
}

func TestAForeignErrorTextIsTruncated(t *testing.T) {
	_, err := newSource(
		t, respondWith(500, strings.Repeat("ä", 5000), "Content-Type", "text/plain")).List(
		metav1.ListOptions{})
	require.Less(t, len(err.Error()), 2*maxForeignText+200)
	require.ErrorContains(t, err, "ä…")
}

func TestRetryAfterReachesTheError(t *testing.T) {
	date := "Mon, 02 Jan 2006 15:04:05 GMT"
	later := "Mon, 02 Jan 2006 15:05:35 GMT"
	for name, test := range map[string]struct {
		body    string
		headers []string
		want    int
	}{
		"none":                        {"", nil, 0},
		"seconds":                     {"", []string{"Retry-After", "17"}, 17},
		"seconds in blanks":           {"", []string{"Retry-After", " 17 "}, 17},
		"negative":                    {"", []string{"Retry-After", "-17"}, 0},
		"more than an int32":          {"", []string{"Retry-After", "99999999999"}, 1<<31 - 1},
		"nonsense":                    {"", []string{"Retry-After", "soon"}, 0},
		"date, by the server's clock": {"", []string{"Retry-After", later, "Date", date}, 90},
		"date that has passed":        {"", []string{"Retry-After", date, "Date", later}, 0},
		"with a Status that lacks it": {
			statusJSON("0", "X", ""), []string{"Retry-After", "17"}, 17,
		},
		"with details that lack it": {
			statusJSON("0", "X", `,"details":{"kind":"pods"}`), []string{"Retry-After", "17"}, 17,
		},
		"the body's own comes first": {
			statusJSON("0", "X", `,"details":{"retryAfterSeconds":5}`),
			[]string{"Retry-After", "17"}, 5,
		},
		"the body's own without header": {
			statusJSON("0", "X", `,"details":{"retryAfterSeconds":5}`), nil, 5,
		},
	} {
		for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
			t.Run(name, func(t *testing.T) {
				_, err := newSource(
					t, respondWith(code, test.body, test.headers...)).List(
					metav1.ListOptions{})
				seconds, suggested := apierrors.SuggestsClientDelay(err)
				require.Equal(t, test.want, seconds)
				require.Equal(t, test.want > 0, suggested)
			})
		}
	}
}

func TestRetryAfterDateWithoutAServersClockIsCountedFromOurs(t *testing.T) {
	now := time.Date(2006, 1, 2, 15, 4, 5, 1, time.UTC)
	header := http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:05:35 GMT"}}
	require.EqualValues(t, 90, retryAfterSeconds(header, now), "89.999999999 s, rounded up")
}

func TestAFailureStatusWithASuccessCodeIsCompleted(t *testing.T) {
	busy := respondWith(200, statusJSON("429", "TooManyRequests", ""), "Retry-After", "7")
	_, err := newSource(t, busy).List(metav1.ListOptions{})
	seconds, suggested := apierrors.SuggestsClientDelay(err)
	require.True(t, suggested)
	require.Equal(t, 7, seconds)

	w, err := newSource(t, busy).Watch(metav1.ListOptions{})
	require.NoError(t, err)
	err = apierrors.FromObject((<-w.ResultChan()).Object)
	require.True(t, apierrors.IsTooManyRequests(err), "%v", err)
	seconds, _ = apierrors.SuggestsClientDelay(err)
	require.Equal(t, 7, seconds)
	w.Stop()
}

func TestStatus410WithoutAReasonIsExpired(t *testing.T) {
	expired := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":410}`
	for _, code := range []int{200, 410} {
		_, err := newSource(t, respondWith(code, expired)).List(metav1.ListOptions{})
		require.True(t, apierrors.IsResourceExpired(err), "%d: %v", code, err)
	}
}

func TestAStatusIsDecodedInAnEncodingThatWasNotRequested(t *testing.T) {
	status := &metav1.Status{Status: "Failure", Reason: "Expired", Code: 410, Message: "too old"}
	body := string(protobufOf(t, status, "v1", "Status"))
	_, err := newSource(
		t, respondWith(500, body, "Content-Type", "application/vnd.kubernetes.protobuf")).List(
		metav1.ListOptions{})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
}
