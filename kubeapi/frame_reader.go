package kubeapi

import (
	"fmt"
	"io"
	"time"
)

// A frame must be complete within frameTime plus one second for each frameRate bytes. Servers write a frame at once, so
// it arrives as fast as the network allows; 64 kbit/s is slow.
const (
	frameTime = 10 * time.Second
	frameRate = 8 << 10
)

// frameReader is the body of a watch. It may be silent between frames but not within one: a damaged byte may have made
// a frame longer than the server meant. Only time spent in Read counts.
type frameReader struct {
	body  io.Reader
	begun func() bool // reports whether a frame has begun
	end   *frameEnd

	waited time.Duration // for the current frame
	earned time.Duration // time allowed for its bytes
	failed error         // returned by all later Reads
}

// frameEnd closes the body if a frame takes too long. It is separate from the reader because the runtime may keep a
// stopped timer, and everything reachable from it, alive.
type frameEnd struct {
	close func() // may be called during a Read, which then returns
	timer *time.Timer
	done  chan struct{} // closed when the timer has closed the body
}

func newFrameReader(body io.Reader, closeBody func()) *frameReader {
	return &frameReader{body: body, end: &frameEnd{close: closeBody, done: make(chan struct{})}}
}

// next is called at the end of a frame.
func (r *frameReader) next() { r.waited, r.earned = 0, 0 }

func (r *frameReader) Read(p []byte) (int, error) {
	switch {
	case r.failed != nil:
		return 0, r.failed
	case !r.begun():
		return r.body.Read(p)
	}
	since := time.Now()
	r.end.after(frameTime + r.earned - r.waited)
	n, err := r.body.Read(p)
	r.waited += time.Since(since)
	r.earned += time.Duration(n) * time.Second / frameRate
	if !r.end.timer.Stop() {
		<-r.end.done
		r.failed = fmt.Errorf("%w: a watch frame has not ended %s after it began", ErrStalled, r.waited.Round(time.Second))
		return n, r.failed
	}
	return n, err
}

func (e *frameEnd) after(wait time.Duration) {
	if e.timer == nil {
		e.timer = time.AfterFunc(wait, e.expire)
		return
	}
	e.timer.Reset(wait)
}

func (e *frameEnd) expire() {
	defer close(e.done)
	e.close()
}
