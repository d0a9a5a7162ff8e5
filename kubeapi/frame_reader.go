package kubeapi

import (
	"fmt"
	"io"
	"time"
)

// A frame must be complete within frameTimeout plus one second for each minFrameRate bytes. Servers
// write a frame at once, so it arrives as fast as the network allows; 64 kbit/s is slow.
const (
	frameTimeout = 10 * time.Second
	minFrameRate = 8 << 10
)

// frameReader is the body of a watch. It may be silent between frames but not within one: a damaged
// byte may have made a frame longer than the server sent it. Only time spent in Read counts.
type frameReader struct {
	body     io.Reader
	inFrame  func() bool // reports whether a frame has begun
	deadline *frameDeadline

	waited    time.Duration // for the current frame
	allowance time.Duration // time allowed for its bytes
	err       error         // returned by all later Reads
}

// frameDeadline closes the body if a frame takes too long. It is separate from the reader because
// the runtime may keep a stopped timer, and everything reachable from it, alive.
type frameDeadline struct {
	closeBody func() // may be called during a Read, which then returns
	timer     *time.Timer
	closed    chan struct{} // closed when the timer has closed the body
}

func newFrameReader(body io.Reader, closeBody func()) *frameReader {
	return &frameReader{
		body:     body,
		deadline: &frameDeadline{closeBody: closeBody, closed: make(chan struct{})},
	}
}

// endFrame resets the time for the next frame.
func (r *frameReader) endFrame() { r.waited, r.allowance = 0, 0 }

func (r *frameReader) Read(p []byte) (int, error) {
	switch {
	case r.err != nil:
		return 0, r.err
	case !r.inFrame():
		return r.body.Read(p)
	}
	start := time.Now()
	r.deadline.start(frameTimeout + r.allowance - r.waited)
	n, err := r.body.Read(p)
	r.waited += time.Since(start)
	r.allowance += time.Duration(n) * time.Second / minFrameRate
	if !r.deadline.timer.Stop() {
		<-r.deadline.closed
		r.err = fmt.Errorf(
			"%w: a watch frame is incomplete after %s", ErrStalled, r.waited.Round(time.Second))
		return n, r.err
	}
	return n, err
}

func (e *frameDeadline) start(wait time.Duration) {
	if e.timer == nil {
		e.timer = time.AfterFunc(wait, e.expire)
		return
	}
	e.timer.Reset(wait)
}

func (e *frameDeadline) expire() {
	defer close(e.closed)
	e.closeBody()
}
