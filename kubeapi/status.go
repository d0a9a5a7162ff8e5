package kubeapi

import (
	"fmt"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/jsonwire"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// refusal returns the error for a response whose HTTP code is not a success.
func (lw *ListerWatcher) refusal(v verb, a *answer) error {
	// A Status that is longer than the limit is cut, and then is no Status.
	body := a.readErrorBody(int64(lw.limits.ErrorBytes))
	if status, ok := lw.statusBody(a, body); ok {
		if status.Code < http.StatusBadRequest {
			// No code, or one that contradicts the refusal.
			status.Code = int32(a.StatusCode)
		}
		a.complete(&status)
		return lw.collection.failure(v, &apierrors.StatusError{ErrStatus: status})
	}
	explanation := explanationOf(a.secrets(), a.Header.Get("Content-Type"), body)
	wait := retryAfterSeconds(a.Header, time.Now())
	failure := apierrors.NewGenericServerResponse(a.StatusCode, string(v), lw.resource, "", explanation, int(wait), true)
	// The helper's message omits the code and most of the explanation.
	failure.ErrStatus.Message = fmt.Sprintf("%d %s: %s", a.StatusCode, http.StatusText(a.StatusCode), explanation)
	a.complete(&failure.ErrStatus)
	return lw.collection.failure(v, failure)
}

// complete adds information from the headers and the code that the Status lacks.
func (a *answer) complete(status *metav1.Status) {
	if status.Code == http.StatusGone && (status.Reason == "" || status.Reason == metav1.StatusReasonUnknown) {
		// A list or watch is answered 410 for one reason only, and callers check for that reason.
		status.Reason = metav1.StatusReasonExpired
	}
	explain(status)
	wait := retryAfterSeconds(a.Header, time.Now())
	if wait == 0 || status.Details != nil && status.Details.RetryAfterSeconds != 0 {
		return
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = wait
}

// statusBody decodes a body that is a failed Status, in any encoding: a server that refuses may have ignored the Accept
// header.
func (lw *ListerWatcher) statusBody(a *answer, body []byte) (metav1.Status, bool) {
	media, _, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	encoding := wires[media]
	if encoding == nil {
		encoding = jsonwire.Encoding
	}
	return readStatus(a.secrets(), encoding, body, lw.limits.wire())
}

// failedStatus decodes a failed Status and gives it a message if it has none. Its texts are safe to print.
func failedStatus(s apiclient.Secrets, encoding wire.Encoding, raw []byte, limits wire.Limits) (metav1.Status, bool) {
	status, ok := readStatus(s, encoding, raw, limits)
	if ok {
		explain(&status)
	}
	return status, ok
}

// explain sets a message in a Status without one, since an error's text consists of the message only.
func explain(status *metav1.Status) {
	if status.Message != "" {
		return
	}
	reason, name := string(status.Reason), http.StatusText(int(status.Code))
	switch {
	case name != "":
		status.Message = fmt.Sprintf("%d %s", status.Code, name)
	case status.Code != 0:
		status.Message = fmt.Sprintf("code %d", status.Code)
	case reason == "":
		status.Message = "a failure without message, reason and code"
	}
	switch {
	case reason == "" || reason == strings.ReplaceAll(name, " ", ""):
	case status.Message == "":
		status.Message = reason
	default:
		status.Message += ": " + reason
	}
}

// readStatus decodes a failed Status and cleans its texts.
func readStatus(s apiclient.Secrets, encoding wire.Encoding, raw []byte, limits wire.Limits) (metav1.Status, bool) {
	var status metav1.Status
	if encoding.Into(raw, limits, &status) != nil || !isFailure(&status) {
		return metav1.Status{}, false
	}
	s.CleanStatus(&status)
	return status, true
}

// isFailure reports whether a decoded Status is a failure. The apiVersion may be missing, since some proxies omit it,
// but must not be another one.
func isFailure(status *metav1.Status) bool {
	switch status.APIVersion {
	case "", "v1", metav1.SchemeGroupVersion.String():
		return status.Kind == "Status" && status.Status != metav1.StatusSuccess
	}
	return false
}

// retryAfterSeconds returns the Retry-After header in seconds, rounded up, or 0 without one. A date is relative to the
// response's Date header if there is one, so that clock skew does not matter.
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

// maxExplanation bounds the characters of a foreign error body in an error's text.
const maxExplanation = apiclient.MaxForeignText

// explanationOf describes an error body that is no Status, in readable text.
func explanationOf(s apiclient.Secrets, contentType string, body []byte) string {
	media, _, _ := mime.ParseMediaType(contentType)
	switch {
	case media == "text/html":
		return "an HTML page"
	case media != "" && media != "application/json" && !strings.HasPrefix(media, "text/"):
		return "a body of type " + s.Line(media)
	}
	if text := s.Line(string(body)); text != "" {
		return text
	}
	return "no explanation"
}
