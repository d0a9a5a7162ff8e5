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

// statusError returns the error for a response whose HTTP code is not a success.
func (lw *ListerWatcher) statusError(v verb, r *response) error {
	// A Status longer than the limit is truncated and cannot be decoded.
	body := r.readErrorBody(int64(lw.limits.ErrorBytes))
	if status, ok := lw.statusFromBody(r, body); ok {
		if status.Code < http.StatusBadRequest {
			// No code, or one that is not an error.
			status.Code = int32(r.StatusCode)
		}
		r.completeStatus(&status)
		return lw.collection.wrapError(v, &apierrors.StatusError{ErrStatus: status})
	}
	description := describeErrorBody(r.secrets(), r.Header.Get("Content-Type"), body)
	delay := retryAfterSeconds(r.Header, time.Now())
	failure := apierrors.NewGenericServerResponse(
		r.StatusCode, string(v), lw.resource, "", description, int(delay), true)
	// The helper's message omits the code and most of the explanation.
	failure.ErrStatus.Message = fmt.Sprintf(
		"%d %s: %s", r.StatusCode, http.StatusText(r.StatusCode), description)
	r.completeStatus(&failure.ErrStatus)
	return lw.collection.wrapError(v, failure)
}

// completeStatus adds information from the headers and the code that the Status lacks.
func (r *response) completeStatus(status *metav1.Status) {
	setExpiredReason(status)
	setDefaultMessage(status)
	delay := retryAfterSeconds(r.Header, time.Now())
	if delay == 0 || status.Details != nil && status.Details.RetryAfterSeconds != 0 {
		return
	}
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.RetryAfterSeconds = delay
}

// statusFromBody decodes a body that is a failed Status, in any encoding: error responses may
// ignore the Accept header.
func (lw *ListerWatcher) statusFromBody(r *response, body []byte) (metav1.Status, bool) {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	encoding := decoders[mediaType]
	if encoding == nil {
		encoding = jsonwire.Encoding
	}
	return readStatus(r.secrets(), encoding, body, lw.limits.wire())
}

// setExpiredReason sets the reason of a 410 without one. For a list or watch it has one reason
// only, and callers check for that reason.
func setExpiredReason(status *metav1.Status) {
	if status.Code == http.StatusGone &&
		(status.Reason == "" || status.Reason == metav1.StatusReasonUnknown) {
		status.Reason = metav1.StatusReasonExpired
	}
}

// errUnknownError is the error for an ERROR frame that arrived intact but is not a failed Status.
var errUnknownError = fmt.Errorf("%w: an ERROR frame without a failure Status", ErrMalformed)

// decodeErrorStatus decodes the object of an ERROR frame. Servers that are no kube-apiserver may
// omit its kind: then a code, a reason or the word Failure shows that it is a Status.
func decodeErrorStatus(
	encoding wire.Encoding, raw []byte, limits wire.Limits,
) (*metav1.Status, error) {
	if len(raw) == 0 {
		return nil, errUnknownError
	}
	status := &metav1.Status{}
	if err := encoding.Into(raw, limits, status); err != nil {
		return nil, err
	}
	if status.Kind == "" && isStatusWithoutKind(status) {
		status.Kind = "Status"
		status.APIVersion = "v1"
	}
	if !isFailure(status) {
		return nil, errUnknownError
	}
	return status, nil
}

func isStatusWithoutKind(status *metav1.Status) bool {
	if status.APIVersion != "" {
		return false
	}
	return status.Code >= http.StatusBadRequest || status.Reason != "" ||
		status.Status == metav1.StatusFailure
}

// setDefaultMessage sets a message in a Status without one, since an error's text consists of the
// message only.
func setDefaultMessage(status *metav1.Status) {
	if status.Message != "" {
		return
	}
	reason := string(status.Reason)
	name := http.StatusText(int(status.Code))
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
func readStatus(
	s apiclient.Secrets, encoding wire.Encoding, raw []byte, limits wire.Limits,
) (metav1.Status, bool) {
	var status metav1.Status
	if encoding.Into(raw, limits, &status) != nil || !isFailure(&status) {
		return metav1.Status{}, false
	}
	s.CleanStatus(&status)
	return status, true
}

// isFailure reports whether a decoded Status is a failure. The apiVersion may be missing, since
// some proxies omit it, but must not be another one.
func isFailure(status *metav1.Status) bool {
	switch status.APIVersion {
	case "", "v1", metav1.SchemeGroupVersion.String():
		return status.Kind == "Status" && status.Status != metav1.StatusSuccess
	}
	return false
}

// retryAfterSeconds returns the Retry-After header in seconds, rounded up, or 0 without one. A date
// is relative to the response's Date header if there is one, so that clock skew does not matter.
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

// maxForeignText bounds the characters of received text in an error's text.
const maxForeignText = apiclient.MaxForeignText

// describeErrorBody describes an error body that is not a Status, for an error's text.
func describeErrorBody(s apiclient.Secrets, contentType string, body []byte) string {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	if mediaType == "text/html" {
		return "an HTML page"
	}
	isText := mediaType == "application/json" || strings.HasPrefix(mediaType, "text/")
	if mediaType != "" && !isText {
		return "a body of type " + s.Line(mediaType)
	}
	if text := s.Line(string(body)); text != "" {
		return text
	}
	return "empty body"
}
