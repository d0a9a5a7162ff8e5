package kubeapi

import (
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Causes of failure, for errors.Is. Each comes wrapped with what was seen; those of
// a call come inside a *url.Error, which names verb and URL.
var (
	// ErrInvalidOptions is what New returns for options that cannot work.
	// Cure: correct the field that the text names.
	ErrInvalidOptions = errors.New("kubeapi: invalid options")

	// ErrRedirect says that the server sent the request on to another scheme, host or
	// port, to an address with a user in it, or to something that is no URL. It was not
	// followed, because it carries credentials. Of its target, no more
	// than the origin is reported.
	// Cure: give the new address as BaseURL, if it is to be trusted.
	ErrRedirect error = &wire.Sentinel{Text: "redirected to another origin", Cause: wire.CauseInvalidResponse}

	// ErrContentType says that the call succeeded but the answer is declared as
	// something that was not asked for. Usually a login page or a proxy answered in
	// place of the API.
	// Cure: BaseURL must be the API's address, and the request must be authorized.
	ErrContentType error = &wire.Sentinel{Text: "the answer is of no type that was asked for", Cause: wire.CauseInvalidResponse}

	// ErrNotList says that a list call was answered with something else: a single
	// object, a Table, a JSON array.
	// Cure: the resource must be the plural name of a collection, and the address that
	// of an API which serves lists where none of its printing forms is asked for.
	ErrNotList error = &wire.Sentinel{Text: "the answer is not a list", Cause: wire.CauseInvalidResponse}

	// ErrMalformed says that a body, a frame or an object is not of the form that its
	// encoding, or the protocol, gives it. The error that was found first is wrapped
	// too.
	ErrMalformed = wire.ErrMalformed

	// ErrTooLarge says that an answer passed one of the Limits; the error is a
	// *LimitError, which names it. Nothing is read any further, except that an object which
	// is nested too deep or takes too much memory is an *UndecodableObject among the others.
	// Cure: if the objects are meant to be so large, raise the limit.
	ErrTooLarge error = &wire.Sentinel{Text: "the answer exceeds a limit", Cause: wire.CauseResponseTooLarge}

	// ErrAuthorize says that Options.Authorize failed, whose error is wrapped too.
	// No request was sent.
	ErrAuthorize error = &wire.Sentinel{Text: "authorizing the request failed", Cause: wire.CauseCredentials}
)

// Causes in the Status of an Error event that this package, not the server, put at
// the end of a watch. Such a Status has an empty reason and the code 0, so that none
// of apimachinery's Is functions takes it for a server's verdict; in particular it
// is no internal error, which callers answer by trying again at once.
const (
	// CauseStreamCut says that the connection ended or failed in the middle of the
	// response, or fell silent in the middle of a frame. All events before are valid; a
	// new watch can go on after them.
	CauseStreamCut metav1.CauseType = "WatchStreamCut"

	// CauseBadFrame says that something arrived which is no watch frame (ErrMalformed)
	// or is larger than one may be (ErrTooLarge), or an object that cannot be decoded. If it
	// was damaged on its way, a new watch from the same version brings it as it was meant. An
	// object that comes the same again is passed on as an *UndecodableObject.
	CauseBadFrame metav1.CauseType = "WatchBadFrame"
)

// failure names verb and address of what failed. It is a *url.Error so that what
// looks through one (apimachinery's IsProbableEOF, every errors.As for a Timeout method)
// finds the cause; the one that net/http makes has the query and possibly credentials
// in its text, and has been removed.
func (c collection) failure(v verb, err error) error {
	return &url.Error{Op: string(v), URL: c.String(), Err: err}
}

// isBadData reports whether what arrived is at fault, and not the connection.
func isBadData(err error) bool {
	return errors.Is(err, ErrMalformed) || errors.Is(err, ErrTooLarge)
}

// limitNames are the fields of Limits by what a decoder calls them.
var limitNames = map[string]string{
	wire.LimitValue:   "ItemBytes",
	wire.LimitNesting: "Nesting",
	wire.LimitToken:   "TokenBytes",
	wire.LimitMemory:  "DecodedBytes",
}

// explained says in the words of this package what a decoder has found.
func explained(err error) error {
	if limit, ok := errors.AsType[*wire.LimitError](err); ok {
		return &LimitError{Limit: limitNames[limit.What], Value: limit.Limit}
	}
	body, ok := errors.AsType[*wire.NotListError](err)
	switch {
	case !ok:
		return err
	case body.Status != nil && isFailure(body.Status):
		// Some proxies answer a refusal with HTTP code 200.
		return &apierrors.StatusError{ErrStatus: *body.Status}
	case body.Kind == "Table":
		return fmt.Errorf("%w: it is a Table, which holds what a screen shows and no objects", ErrNotList)
	case body.Kind == "":
		return fmt.Errorf("%w: it has neither a kind nor items", ErrNotList)
	}
	return fmt.Errorf("%w: its kind is %q and it has no items", ErrNotList, wire.Printable(body.Kind, maxExplanation))
}
