package kubeapi

import (
	"fmt"
	"io"
	"time"
)

// A frame that has begun may keep a watch waiting for frameTime, and a second more for each
// frameRate bytes of it. Servers write a frame in one piece, so that it arrives as fast as
// the network can; 64 kbit/s is a slow one.
const (
	frameTime = 10 * time.Second
	frameRate = 8 << 10
)

// frameReader is the body of a watch: it may be silent between frames, but not within one, since a damaged byte may have made
// a frame longer than it is. Only waiting counts: while nobody reads, the clock stands still.
type frameReader struct {
	body  io.Reader
	begun func() bool // whether a frame has begun
	end   *frameEnd

	waited time.Duration // for the frame at hand
	earned time.Duration // by its bytes
	failed error         // then it stays
}

// frameEnd closes the body of a frame that took too long. It is apart from the reader because
// the runtime may remember a timer that was stopped, and what it leads to.
type frameEnd struct {
	close func() // may be called while a Read is under way, which returns then
	timer *time.Timer
	done  chan struct{} // closed when the timer has closed the body
}

func newFrameReader(body io.Reader, closeBody func()) *frameReader {
	return &frameReader{body: body, end: &frameEnd{close: closeBody, done: make(chan struct{})}}
}

// next says that the frame at hand is over.
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
