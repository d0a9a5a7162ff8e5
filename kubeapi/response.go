package kubeapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// response is an HTTP response whose body is being read, with everything that must be released
// afterwards.
type response struct {
	*http.Response
	encoding wire.Encoding      // encoding of the body
	ctx      context.Context    // of the request: ends with the caller's or by cancel
	cancel   context.CancelFunc // ends the request; Read then fails
	stall    *stallTimer
	sent     *apiclient.Sent // values sent by the request, which errors must not show
	source   *ListerWatcher

	use     connectionUse
	sentAt  time.Time
	expects expectation
	// neverCompleted is set if the rest of a frame or of an error's body did not arrive in time.
	neverCompleted atomic.Bool

	stopAfterFunc func() bool // detaches closeBody from the request's context
	closeBody     func()      // closes the body once; returns when the body is closed
}

// setResponse stores the response and closes its body when the context ends. net/http's own
// transports need no such close; a caller's RoundTripper may drop the context.
func (r *response) setResponse(httpResponse *http.Response) {
	r.stall.endWait(0)
	r.use.received(time.Now())
	httpResponse.Body = lastReadBody{ReadCloser: httpResponse.Body, response: r}
	r.Response = httpResponse
	r.closeBody = sync.OnceFunc(func() { _ = httpResponse.Body.Close() })
	r.stopAfterFunc = context.AfterFunc(r.ctx, r.closeBody)
}

// lastReadBody records when bytes last arrived.
type lastReadBody struct {
	io.ReadCloser
	response *response
}

func (b lastReadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		now := time.Now()
		b.response.source.lastRead.Store(now.UnixNano())
		b.response.use.received(now)
	}
	return n, err
}

// secrets returns the secrets of the call's requests, redirects and retries included.
func (r *response) secrets() apiclient.Secrets { return r.sent.Secrets() }

// reader returns the body with stall detection.
func (r *response) reader() io.Reader { return r.stall.reader(transportErrorReader{r.Body}) }

// errConnectionLost is wrapped by the transport's errors while reading a body. Those of HTTP/2 have
// no exported type.
var errConnectionLost error = &apiclient.Sentinel{
	Text:  "the response was cut off",
	Cause: apiclient.CauseConnectionLost,
}

// streamReset has the fields of net/http's unexported error for a reset HTTP/2 stream, so that
// errors.As finds it.
type streamReset struct {
	StreamID, Code uint32
	Cause          error
}

func (streamReset) Error() string { return errConnectionLost.Error() }

type transportErrorReader struct{ body io.Reader }

func (r transportErrorReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", errConnectionLost, err)
	}
	return n, err
}

// release cancels the request and closes the body. A connection returns to the pool only if its
// body was read to the end, and is closed if it is dead.
func (r *response) release() {
	r.stall.stop()
	r.discardDeadConnection()
	r.use.end()
	if r.Response != nil {
		r.stopAfterFunc()
		r.closeBody()
	}
	r.cancel()
}

// errorBodyTimeout bounds the time to read a body that only explains an error.
const errorBodyTimeout = 10 * time.Second

// readErrorBody reads at most limit bytes, for at most errorBodyTimeout, and returns what arrived:
// an error response that never ends must not block the caller.
func (r *response) readErrorBody(limit int64) []byte {
	timer := time.AfterFunc(errorBodyTimeout, func() {
		r.neverCompleted.Store(true)
		r.cancel()
	})
	defer timer.Stop()
	data, _ := io.ReadAll(io.LimitReader(r.Body, limit))
	return data
}

// previewBytes is enough to recognize a login page by its first line.
const previewBytes = 100

// forResponse returns the encoding of a response's body, or an error if it cannot be decoded.
func (e encodings) forResponse(r *response) (wire.Encoding, error) {
	contentType := r.Header.Get("Content-Type")
	encoding := e.forContentType(contentType)
	if encoding == nil {
		return nil, fmt.Errorf(
			"%w: %q, the body begins with %q", ErrContentType,
			r.secrets().Line(contentType), r.secrets().Line(string(r.readErrorBody(previewBytes))))
	}
	// The transport removes this header when it decompresses a body.
	contentEncoding := r.Header.Get("Content-Encoding")
	if contentEncoding != "" && contentEncoding != "identity" {
		return nil, fmt.Errorf(
			"%w: content encoding %q", ErrContentType, r.secrets().Line(contentEncoding))
	}
	return encoding, nil
}
