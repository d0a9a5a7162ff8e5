package kubeapi

import (
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// maxErrorBytes bounds the body of a refusal. A Status has a few hundred bytes; only
// a long list of validation causes has more.
const maxErrorBytes = 64 << 10

// refusal is the error for an answer whose HTTP code is not a success.
func (lw *ListerWatcher) refusal(v verb, a *answer) error {
	// A Status that is longer is cut off, and with that no JSON any more.
	body := a.readAside(maxErrorBytes)
	wait := retryAfterSeconds(a.Header, time.Now())

	if status, ok := statusBody(body); ok {
		if status.Code == 0 {
			status.Code = int32(a.StatusCode)
		}
		if wait > 0 && (status.Details == nil || status.Details.RetryAfterSeconds == 0) {
			if status.Details == nil {
				status.Details = &metav1.StatusDetails{}
			}
			status.Details.RetryAfterSeconds = wait
		}
		return &apierrors.StatusError{ErrStatus: status}
	}

	failure := apierrors.NewGenericServerResponse(a.StatusCode, string(v), lw.resource, "",
		explanation(a.Header.Get("Content-Type"), body), int(wait), true)
	if a.StatusCode == http.StatusGone {
		// The helper knows no reason for this code. A list or a watch is gone for one
		// reason only, and it is the one callers ask for.
		failure.ErrStatus.Reason = metav1.StatusReasonExpired
	}
	return failure
}

// statusBody reads a body that is a failed Status. Anything else, also a Status that
// claims success beside an HTTP code that does not, explains nothing.
func statusBody(body []byte) (metav1.Status, bool) {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil {
		return metav1.Status{}, false
	}
	ok := status.Kind == "Status" && status.Status != metav1.StatusSuccess
	return status, ok
}

// retryAfterSeconds reads the Retry-After header in both its forms, seconds and
// date, rounded up; 0 if there is none, or none that lies ahead. A date is counted
// from the server's own Date, where it sent one, so that a difference between the
// clocks does no harm.
func retryAfterSeconds(header http.Header, now time.Time) int32 {
	text := strings.TrimSpace(header.Get("Retry-After"))
	if text == "" {
		return 0
	}
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return int32(min(max(seconds, 0), math.MaxInt32))
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(header.Get("Date")); err == nil {
		now = sent
	}
	seconds := math.Ceil(until.Sub(now).Seconds())
	return int32(min(max(seconds, 0), math.MaxInt32))
}

// maxExplanation is how many characters of a foreign error body become part of an
// error's text.
const maxExplanation = 512

// explanation is what an error body that is no Status says, if people can read it.
func explanation(contentType string, body []byte) string {
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == "text/html":
		return "an HTML page"
	case media != "" && media != "application/json" && !strings.HasPrefix(media, "text/"):
		return "a body of type " + media
	}
	if text := readable(body); text != "" {
		return text
	}
	return "no explanation"
}

// readable makes one line of foreign bytes that does no harm in a log.
func readable(data []byte) string {
	text := []rune(strings.ToValidUTF8(string(data), "\uFFFD"))
	if len(text) > maxExplanation {
		text = append(text[:maxExplanation], '…')
	}
	line := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, string(text))
	return strings.Join(strings.Fields(line), " ")
}
