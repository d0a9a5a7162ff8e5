package kubeapi

import (
	"context"
	"errors"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/apiclient"
)

// fuzzSecret is a token in a request. A part of it is enough to find the rest.
var fuzzSecret = func() string {
	var token strings.Builder
	for i := range 300 {
		token.WriteString(strconv.FormatInt(int64(1000+i), 36))
	}
	return token.String()
}()

// repeating replaces the placeholder in a server's text by the token.
func repeating(text string) string { return strings.ReplaceAll(text, "{token}", fuzzSecret) }

// tellsNothing fails if a text has a piece of the token that is long enough to matter.
func tellsNothing(t *testing.T, text string) {
	t.Helper()
	const piece = 12
	for at := range len(fuzzSecret) - piece {
		if strings.Contains(text, fuzzSecret[at:at+piece]) {
			t.Fatalf("the token, from its byte %d on, is in %q", at, text)
		}
	}
}

// FuzzAnswer makes a server send any response to a list and a watch, and repeat the request in it.
// An unsuccessful code is the same API error of both, with the response's pause, in one printable
// line. Nothing that is reported has the token.
func FuzzAnswer(f *testing.F) {
	f.Add(uint16(410), "application/json", statusJSON("410", "Expired", ""), "", "")
	f.Add(uint16(403), "text/plain", "who is {token}?", "7", "")
	f.Add(
		uint16(429), "application/json",
		statusJSON("429", "TooManyRequests", `,"details":{"retryAfterSeconds":3}`), "120", "")
	f.Add(
		uint16(503), "", strings.Repeat("x", 500)+"{token}", "Wed, 21 Oct 2026 07:28:00 GMT",
		"Wed, 21 Oct 2026 07:27:00 GMT")
	f.Add(uint16(200), "application/json", podList(podJSON("{token}", 3)), "", "")
	f.Add(uint16(200), "text/html; {token}", "{token}{token}", "", "")
	f.Add(
		uint16(200), "application/json",
		statusJSON("403", "{token}", `,"details":{"name":"{token}"}`), "9", "")
	f.Add(uint16(500), "application/vnd.kubernetes.protobuf", "k8s\x00{token}", "-1", "")
	f.Fuzz(func(t *testing.T, code uint16, contentType, body, retryAfter, date string) {
		code = 200 + (code+200)%400 // 200 to 599
		if len(body) > 4096 || code == http.StatusSwitchingProtocols {
			return
		}
		headers := http.Header{
			"Content-Type": {repeating(contentType)},
			"Retry-After":  {retryAfter},
			"Date":         {date},
		}
		lw := newSourceOf(t, server(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: int(code),
				Header:     headers,
				Body:       textBody(repeating(body)),
			}, nil
		}), Options{Authorize: func(r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+fuzzSecret)
			return nil
		}})
		_, err := lw.List(metav1.ListOptions{Continue: fuzzSecret})
		if err != nil {
			checkFailure(t, err)
		}
		if code <= 299 {
			return
		}
		var refused *apierrors.StatusError
		require.ErrorAs(t, err, &refused)
		status := refused.ErrStatus
		require.True(t, status.Code == int32(code) || status.Code >= 400, "%d", status.Code)
		if refused.ErrStatus.Code == http.StatusGone {
			require.NotEmpty(t, status.Reason)
		}

		_, err = lw.Watch(metav1.ListOptions{ResourceVersion: "1"})
		var watching *apierrors.StatusError
		require.ErrorAs(t, err, &watching)
		require.Equal(t, status.Code, watching.ErrStatus.Code)
		if !strings.Contains(
			string(status.Reason+watching.ErrStatus.Reason), "…",
		) { // the two queries differ, so a repeated one does too
			require.Equal(t, status.Reason, watching.ErrStatus.Reason)
		}
		checkFailure(t, err)

		// A Status may spell the name of its pause in many ways. The pause of the Status itself is
		// that without the header.
		headers.Del("Retry-After")
		_, err = lw.List(metav1.ListOptions{Continue: fuzzSecret})
		var bare *apierrors.StatusError
		require.ErrorAs(t, err, &bare)
		checkPause(t, status, pause(bare.ErrStatus), retryAfter)
	})
}

// checkFailure checks the properties of every failed call.
func checkFailure(t *testing.T, err error) {
	t.Helper()
	reported := err.Error()
	tellsNothing(t, reported)
	for _, r := range reported {
		require.True(t, unicode.IsPrint(r) || r == ' ', "%q", reported)
	}
	require.Less(t, len(reported), 3*4*apiclient.MaxStatusText)
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok &&
		status.ErrStatus.Details != nil {
		details := status.ErrStatus.Details
		tellsNothing(
			t, details.Name+" "+details.Kind+" "+details.Group+" "+string(status.ErrStatus.Reason))
	}
}

// pause returns the pause of a refusal.
func pause(status metav1.Status) int32 {
	if status.Details == nil {
		return 0
	}
	return status.Details.RetryAfterSeconds
}

// checkPause compares a refusal's pause with the header, unless the Status has its own: said.
func checkPause(t *testing.T, status metav1.Status, said int32, retryAfter string) {
	t.Helper()
	seconds, err := strconv.ParseInt(strings.TrimSpace(retryAfter), 10, 64)
	if err != nil {
		return
	}
	if said == 0 {
		said = int32(min(max(seconds, 0), math.MaxInt32))
	}
	require.Equal(t, said, pause(status), "Retry-After %q", retryAfter)
}

// FuzzRetryAfter reads the header Retry-After. Its result is in seconds from now and never
// negative, and a date is relative to the server's own.
func FuzzRetryAfter(f *testing.F) {
	f.Add("120", int64(0), int64(0), int64(0))
	f.Add("", int64(1_800_000_000), int64(1_800_000_060), int64(1_700_000_000))
	f.Add("soon", int64(-1), int64(253402300799), int64(1))
	f.Fuzz(func(t *testing.T, text string, sent, until, now int64) {
		clock := time.Unix(now%1e11, 500)
		seconds := retryAfterSeconds(http.Header{"Retry-After": {text}}, clock)
		require.GreaterOrEqual(t, seconds, int32(0))
		if n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 30); err == nil {
			require.Equal(t, int32(n), seconds)
		}

		// Dates have four digits for the year.
		const years = 253402300800
		sent = (sent%years + years) % years
		until = (until%years + years) % years
		now = (now%years + years) % years
		dated := func(unix int64) string { return time.Unix(unix, 0).UTC().Format(http.TimeFormat) }
		want := func(from int64) int32 { return int32(min(max(until-from, 0), math.MaxInt32)) }
		require.Equal(
			t,
			want(sent),
			retryAfterSeconds(
				http.Header{"Retry-After": {dated(until)}, "Date": {dated(sent)}}, clock),
		)
		require.Equal(
			t, want(now),
			retryAfterSeconds(http.Header{"Retry-After": {dated(until)}}, time.Unix(now, 500)),
			"what is begun of a second counts")
	})
}

// FuzzWarnings sends warnings and other values in headers. Each text is reported once, decoded and
// in order, and no part of an unreadable one is reported.
func FuzzWarnings(f *testing.F) {
	f.Add("deprecated", `in "v2"`, "299 - raw", []byte{0, 1, 8, 2})
	f.Add("", "\\\t", `199 a "x", 299 - "y"`, []byte{3, 3, 1, 0})
	f.Add("a\x00b", "ü", `299 - "x`, []byte{2, 2, 2})
	f.Add("=?utf-8?q?=C3=BC?=", "==?====\\A", "", []byte{0, 8, 1, 9})
	f.Add("=?utf-8?q?=00?=", "=?utf-8?b?!?=", "", []byte{0, 8, 1, 9})
	f.Fuzz(func(t *testing.T, first, second, raw string, order []byte) {
		var reported []string
		w := newWarnings(
			"x", func(_ context.Context, text string) { reported = append(reported, text) })
		want := []string{}
		known := map[string]bool{}
		for _, choice := range order[:min(len(order), 50)] {
			texts := []string{first, second, strconv.Itoa(int(choice))}[choice%3:]
			code := 299
			if choice&4 != 0 {
				code = 199
			}
			var values []string
			for _, text := range texts {
				values = append(
					values,
					strconv.Itoa(
						code)+` agent "`+strings.NewReplacer(
						`\`, `\\`, `"`, `\"`).Replace(
						text)+`"`,
				)
			}
			joined := choice&8 != 0
			if joined {
				values = []string{strings.Join(values, ", ")}
			}
			w.reportNew(t.Context(), http.Header{"Warning": values}, nil)
			for _, text := range texts {
				text, readable := decoded(text)
				if !readable && joined {
					break // nor is anything after it
				}
				shown := apiclient.Printable(text, maxWarningText)
				if readable && code == 299 && shown != "" && !known[shown] {
					known[shown] = true
					want = append(want, shown)
				}
			}
		}
		require.Equal(t, want, append([]string{}, reported...))

		w.reportNew(t.Context(), http.Header{"Warning": {raw, raw}}, nil)
		for i, text := range reported {
			require.Equal(t, apiclient.Printable(text, maxWarningText), text)
			require.NotContains(t, reported[:i], text)
		}
	})
}

// decoded returns the text of a warning, and whether it can be read. A text may have encoded words,
// which are obsolete; if they cannot be decoded, they are kept.
func decoded(text string) (string, bool) {
	if plain, err := new(mime.WordDecoder).DecodeHeader(text); err == nil {
		text = plain
	}
	return text, utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
