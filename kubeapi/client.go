package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ListerWatcher lists and watches one resource of a Kubernetes-style API. It keeps
// nothing between calls but the configuration it was made with and the connections
// of its HTTP client; all methods may be called concurrently.
type ListerWatcher struct {
	collection collection
	resource   schema.GroupResource
	client     http.Client
	userAgent  string
	authorize  func(*http.Request) error
}

// New checks the options and makes a ListerWatcher. It sends nothing: whether the
// server exists is found out by the first call. The error wraps ErrInvalidOptions
// and names the field.
func New(options Options) (*ListerWatcher, error) {
	base, err := options.validated()
	if err != nil {
		return nil, err
	}
	lw := &ListerWatcher{
		collection: newCollection(base, options),
		resource:   options.Resource.GroupResource(),
		userAgent:  options.UserAgent,
		authorize:  options.Authorize,
	}
	if lw.userAgent == "" {
		lw.userAgent = defaultUserAgent()
	}
	if options.HTTPClient != nil {
		lw.client = *options.HTTPClient
	}
	lw.client.Transport = readableRedirects{lw.client.Transport}
	lw.client.CheckRedirect = sameOrigin(lw.client.CheckRedirect)
	return lw, nil
}

// IsWatchListSemanticsUnSupported says false: a watch with sendInitialEvents is sent
// to the server as it is, and what the server answers comes back. (The name is
// client-go's, where it marks sources that cannot do so.)
func (lw *ListerWatcher) IsWatchListSemanticsUnSupported() bool { return false }

// send makes one request and returns its answer once the headers are there and say
// that JSON follows. Everything else is an error, and then nothing is left open.
func (lw *ListerWatcher) send(ctx context.Context, v verb, options metav1.ListOptions) (*answer, error) {
	target, err := lw.collection.request(v, options)
	if err != nil {
		return nil, lw.collection.failure(v, err)
	}
	sendCtx, cancel := context.WithCancel(ctx)
	response, err := lw.roundTrip(sendCtx, target)
	if err != nil {
		cancel()
		return nil, lw.failed(ctx, v, err)
	}
	a := newAnswer(sendCtx, cancel, response)
	if response.StatusCode < 200 || response.StatusCode > 299 {
		err = lw.refusal(v, a)
	} else if err = a.checkJSON(); err != nil {
		err = lw.collection.failure(v, err)
	}
	if err != nil {
		a.release()
		if ctx.Err() != nil {
			return nil, lw.failed(ctx, v, err)
		}
		return nil, err
	}
	return a, nil
}

func (lw *ListerWatcher) roundTrip(ctx context.Context, target string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", lw.userAgent)
	if lw.authorize != nil {
		if err := lw.authorize(request); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrAuthorize, err)
		}
	}
	return lw.client.Do(request)
}

// failed turns an error into that of the call. A context that has ended is always
// the reason given, whatever it made the transport say.
func (lw *ListerWatcher) failed(ctx context.Context, v verb, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = ended
	}
	return lw.collection.failure(v, err)
}

// answer is a response whose body somebody will read, and what has to be given back
// afterwards.
type answer struct {
	*http.Response
	ctx    context.Context    // of the request: ends with the caller's, or by cancel
	cancel context.CancelFunc // ends the request; Read then fails

	unhook    func() bool // detaches closeBody from the request's context
	closeBody func()      // at most once; returns when the body is closed
}

// newAnswer closes the body when the context ends. net/http's own transports would
// make Read return without that, but a caller's RoundTripper may lose the context on
// the way.
func newAnswer(ctx context.Context, cancel context.CancelFunc, response *http.Response) *answer {
	closeBody := sync.OnceFunc(func() { _ = response.Body.Close() })
	return &answer{
		Response:  response,
		ctx:       ctx,
		cancel:    cancel,
		unhook:    context.AfterFunc(ctx, closeBody),
		closeBody: closeBody,
	}
}

// release gives everything back. A connection whose body was read to its end goes
// back to the pool, any other is closed.
func (a *answer) release() {
	a.unhook()
	a.closeBody()
	a.cancel()
}

// asideTimeout bounds the reading of what is wanted for an error's text only.
const asideTimeout = 10 * time.Second

// readAside reads at most limit bytes, for at most asideTimeout: a server that refuses
// a request and then never finishes its explanation must not hang the caller.
// It returns what there is.
func (a *answer) readAside(limit int64) []byte {
	timer := time.AfterFunc(asideTimeout, a.cancel)
	defer timer.Stop()
	data, _ := io.ReadAll(io.LimitReader(a.Body, limit))
	return data
}

// previewBytes is enough to recognise a login page by its first line.
const previewBytes = 100

// checkJSON returns an error if the headers declare something other than JSON.
// Without a declaration the body is tried: a server that forgets the header is more
// common than one that sends something else without it. Of a declaration only the type
// counts: "application/json; charset" is broken, and says enough.
func (a *answer) checkJSON() error {
	declared := a.Header.Get("Content-Type")
	if declared == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(declared)
	if media == "application/json" && (err == nil || errors.Is(err, mime.ErrInvalidMediaParameter)) {
		return nil
	}
	return fmt.Errorf("%w: content type %q, beginning %q",
		ErrContentType, declared, readable(a.readAside(previewBytes), maxExplanation))
}
