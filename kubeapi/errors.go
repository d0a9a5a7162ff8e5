package kubeapi

import (
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Causes of failure, for errors.Is. They are wrapped with details; those of a call also in a
// *url.Error, which names the verb and URL.
var (
	// ErrInvalidOptions: New was called with invalid options; the text names the field.
	ErrInvalidOptions = errors.New("kubeapi: invalid options")

	// ErrRedirect: the server redirected to another scheme, host or port, or to an invalid URL. The
	// redirect was not followed, because the request carries credentials. If the new address is
	// trusted, use it as BaseURL.
	ErrRedirect = apiclient.ErrRedirect

	// ErrContentType: the response has a media type that was not requested, such as a login page or
	// a proxy's error page.
	ErrContentType error = &apiclient.Sentinel{
		Text:  "unexpected content type",
		Cause: apiclient.CauseInvalidResponse,
	}

	// ErrNotList: the response to a list is a single object, a Table, a document of discovery, a
	// JSON array, or a list without items and version.
	ErrNotList error = &apiclient.Sentinel{
		Text:  "the response is not a list",
		Cause: apiclient.CauseInvalidResponse,
	}

	// ErrMalformed: a body, frame or object does not conform to its encoding or to the protocol.
	// The underlying error is wrapped too.
	ErrMalformed = wire.ErrMalformed

	// ErrTooLarge: a response exceeds one of the Limits, which the *LimitError names. Reading
	// stops, except that an object that is nested too deep or needs too much memory becomes an
	// *UndecodableObject.
	ErrTooLarge = apiclient.ErrTooLarge

	// ErrAuthorize: Options.Authorize failed; its error is wrapped too. No request was sent.
	ErrAuthorize = apiclient.ErrAuthorize
)

// Causes in the Status of an Error event with which this package, not the server, ends a watch.
// Reason and code are empty, so that no Is function of apimachinery takes it for the server's.
const (
	// CauseStreamCut: the connection ended, failed or stalled in the middle of the response. All
	// earlier events are valid, and a new watch can continue after them.
	CauseStreamCut metav1.CauseType = "WatchStreamCut"

	// CauseBadFrame: a frame was not a watch frame (ErrMalformed), too large (ErrTooLarge), or had
	// an object that cannot be decoded. If it was damaged in transit, a new watch from the same
	// version brings it intact. An object that arrives again unchanged is passed on as an
	// *UndecodableObject.
	CauseBadFrame metav1.CauseType = "WatchBadFrame"

	// CauseUnknownError: the server ended the watch with an ERROR event that arrived intact and
	// does not tell why: it has no Status, or one without code and reason. A new watch from the
	// same version may end in the same way, so list. The Status of an event without one has
	// CauseBadFrame too.
	CauseUnknownError metav1.CauseType = "WatchUnknownError"
)

// wrapError wraps an error in a *url.Error with the verb and address, without the query and
// credentials that net/http's has. IsProbableEOF and errors.As unwrap it.
func (c collection) wrapError(v verb, err error) error {
	return &url.Error{Op: string(v), URL: c.String(), Err: err}
}

// isBadData reports whether the received data caused the error, not the connection.
func isBadData(err error) bool {
	return errors.Is(err, ErrMalformed) || errors.Is(err, ErrTooLarge)
}

// limitNames maps a decoder's limits to the fields of Limits.
var limitNames = map[string]string{
	wire.LimitValue:   "ItemBytes",
	wire.LimitNesting: "Nesting",
	wire.LimitToken:   "TokenBytes",
	wire.LimitMemory:  "DecodedBytes",
}

// translateError translates a decoder's error into an error of this package.
func translateError(err error) error {
	if limit, ok := errors.AsType[*wire.LimitError](err); ok {
		return &LimitError{Limit: limitNames[limit.What], Value: limit.Limit}
	}
	body, ok := errors.AsType[*wire.NotListError](err)
	switch {
	case !ok:
		return err
	case body.Status != nil && isFailure(body.Status):
		// Some proxies send an error Status with HTTP code 200.
		return &apierrors.StatusError{ErrStatus: *body.Status}
	case body.Kind == "":
		return fmt.Errorf("%w: it has neither a kind nor items", ErrNotList)
	}
	kind := apiclient.Printable(body.Kind, maxForeignText)
	switch {
	case wire.IsNeverList(metav1.TypeMeta{Kind: body.Kind}):
		return fmt.Errorf("%w: it is a %q, which has no objects", ErrNotList, kind)
	case wire.NamesList(body.Kind):
		return fmt.Errorf(
			"%w: its kind is %q and it has neither items nor a version", ErrNotList, kind)
	}
	return fmt.Errorf("%w: its kind is %q and it has no items", ErrNotList, kind)
}
