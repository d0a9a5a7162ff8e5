package kubeapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// answer is a response whose body somebody will read, and what has to be released
// afterwards.
type answer struct {
	*http.Response
	encoding wire.Encoding      // of the body
	ctx      context.Context    // of the request: ends with the caller's, or by cancel
	cancel   context.CancelFunc // ends the request; Read then fails
	stall    *stall
	sent     *sent // by the request, to be hidden in errors
	lastRead *atomic.Int64

	unhook    func() bool // detaches closeBody from the request's context
	closeBody func()      // at most once; returns when the body is closed
}

// hold takes the response over. The body is closed when the context ends: net/http's own
// transports would make Read return without that, but a caller's RoundTripper may lose
// the context on the way.
func (a *answer) hold(response *http.Response) {
	a.stall.arrived(0)
	response.Body = notedBody{response.Body, a.lastRead}
	a.Response = response
	a.sent.request(response.Request) // as the transport has made it
	a.closeBody = sync.OnceFunc(func() { _ = response.Body.Close() })
	a.unhook = context.AfterFunc(a.ctx, a.closeBody)
}

// notedBody notes when bytes have come, in nanoseconds since 1970.
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

// secrets are those of the request, and of those that followed from it.
func (a *answer) secrets() secrets { return a.sent.secrets() }

// reader reads the body, for as long as something comes.
func (a *answer) reader() io.Reader { return a.stall.reader(lostReader{a.Body}) }

// errLost is the kind of the transport's errors in a body, such as those of HTTP/2, which have no type.
var errLost error = &wire.Sentinel{Text: "the answer was cut", Cause: wire.CauseConnectionLost}

// streamReset is net/http's error for a stream of HTTP/2 that was reset, found by errors.As: that one is not exported.
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

// release releases everything. A connection whose body was read to its end returns
// to the pool, any other is closed.
func (a *answer) release() {
	a.stall.stop()
	if a.Response != nil {
		a.unhook()
		a.closeBody()
	}
	a.cancel()
}

// errorBodyTimeout bounds the reading of a body that is for an error's text only.
const errorBodyTimeout = 10 * time.Second

// readErrorBody reads at most limit bytes, for at most errorBodyTimeout: a server that refuses
// a request and then never finishes its explanation must not hang the caller.
// It returns what there is.
func (a *answer) readErrorBody(limit int64) []byte {
	timer := time.AfterFunc(errorBodyTimeout, a.cancel)
	defer timer.Stop()
	data, _ := io.ReadAll(io.LimitReader(a.Body, limit))
	return data
}

// previewBytes is enough to recognise a login page by its first line.
const previewBytes = 100

// readable says how to read a body, or why it cannot be read.
func (e encodings) readable(a *answer) (wire.Encoding, error) {
	declared := a.Header.Get("Content-Type")
	encoding := e.encodingOf(declared)
	if encoding == nil {
		return nil, fmt.Errorf("%w: content type %q, beginning %q",
			ErrContentType, a.secrets().line(declared), a.secrets().line(string(a.readErrorBody(previewBytes))))
	}
	// What the transport has unpacked is not declared any more.
	if packed := a.Header.Get("Content-Encoding"); packed != "" && packed != "identity" {
		return nil, fmt.Errorf("%w: content encoding %q", ErrContentType, a.secrets().line(packed))
	}
	return encoding, nil
}
