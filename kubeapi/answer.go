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

// answer is a response with a body to read, and everything that must be released after reading it.
type answer struct {
	*http.Response
	encoding wire.Encoding      // encoding of the body
	ctx      context.Context    // context of the request: ends with the caller's context or by cancel
	cancel   context.CancelFunc // ends the request; Read then fails
	stall    *stall
	sent     *apiclient.Sent // values sent by the request, which errors must not show
	lastRead *atomic.Int64

	unhook    func() bool // detaches closeBody from the request's context
	closeBody func()      // closes the body once; returns when the body is closed
}

// hold stores the response and closes its body when the context ends. net/http's own transports need no such close; a
// caller's RoundTripper may drop the context.
func (a *answer) hold(response *http.Response) {
	a.stall.arrived(0)
	response.Body = notedBody{response.Body, a.lastRead}
	a.Response = response
	a.closeBody = sync.OnceFunc(func() { _ = response.Body.Close() })
	a.unhook = context.AfterFunc(a.ctx, a.closeBody)
}

// notedBody stores the time at which bytes last arrived, in nanoseconds since 1970.
type notedBody struct {
	io.ReadCloser
	last *atomic.Int64
}

func (b notedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.last.Store(time.Now().UnixNano())
	}
	return n, err
}

// secrets returns the secrets of the call's requests, redirects and retries included.
func (a *answer) secrets() apiclient.Secrets { return a.sent.Secrets() }

// reader returns the body, guarded against stalls.
func (a *answer) reader() io.Reader { return a.stall.reader(lostReader{a.Body}) }

// errLost wraps the transport's errors in a body. Those of HTTP/2 have no exported type.
var errLost error = &apiclient.Sentinel{Text: "the answer was cut", Cause: apiclient.CauseConnectionLost}

// streamReset has the fields of net/http's unexported error for a reset HTTP/2 stream, so that errors.As finds it.
type streamReset struct {
	StreamID, Code uint32
	Cause          error
}

func (streamReset) Error() string { return errLost.Error() }

type lostReader struct{ body io.Reader }

func (r lostReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	if err != nil && err != io.EOF {
		err = fmt.Errorf("%w: %w", errLost, err)
	}
	return n, err
}

// release cancels the request and closes the body. A connection returns to the pool only if its body was read to the
// end.
func (a *answer) release() {
	a.stall.stop()
	if a.Response != nil {
		a.unhook()
		a.closeBody()
	}
	a.cancel()
}

// errorBodyTimeout bounds the time to read a body that only explains an error.
const errorBodyTimeout = 10 * time.Second

// readErrorBody reads at most limit bytes, for at most errorBodyTimeout, and returns what arrived: a refusal that never
// finishes its explanation must not block the caller.
func (a *answer) readErrorBody(limit int64) []byte {
	timer := time.AfterFunc(errorBodyTimeout, a.cancel)
	defer timer.Stop()
	data, _ := io.ReadAll(io.LimitReader(a.Body, limit))
	return data
}

// previewBytes is enough to recognize a login page by its first line.
const previewBytes = 100

// readable returns the encoding of a body, or an error that says why the body cannot be read.
func (e encodings) readable(a *answer) (wire.Encoding, error) {
	declared := a.Header.Get("Content-Type")
	encoding := e.encodingOf(declared)
	if encoding == nil {
		return nil, fmt.Errorf("%w: content type %q, beginning %q",
			ErrContentType, a.secrets().Line(declared), a.secrets().Line(string(a.readErrorBody(previewBytes))))
	}
	// The transport removes this header when it decompresses a body.
	if packed := a.Header.Get("Content-Encoding"); packed != "" && packed != "identity" {
		return nil, fmt.Errorf("%w: content encoding %q", ErrContentType, a.secrets().Line(packed))
	}
	return encoding, nil
}
