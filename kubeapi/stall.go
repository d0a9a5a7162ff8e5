package kubeapi

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/watchmirror/cache/internal/apiclient"
)

// ErrStalled: a list brought no byte for Options.StallTimeout or came too slowly, or a watch frame
// was not complete in time (10 s plus a second for each 8 KiB). The connection is treated as half
// open.
var ErrStalled error = &apiclient.Sentinel{
	Text:  "the response stalled",
	Cause: apiclient.CauseStalled,
}

// stallTimer ends a request that waits too long for headers or for a byte of the body. Each wait
// may take limit; all waits together may take four times limit plus a second for each minListRate
// bytes. Time outside a wait does not count. One goroutine at a time waits; err may be called
// concurrently.
type stallTimer struct {
	limit  time.Duration
	cancel context.CancelFunc

	mu        sync.Mutex
	timer     *time.Timer // nil before the first wait
	waitStart time.Time   // start of the current wait; zero if there is none
	waited    time.Duration
	allowance time.Duration // time allowed for the received bytes
	expired   bool
	stopped   bool

	canceling sync.WaitGroup // the timer's goroutine, while it calls cancel
}

// minListRate is the minimum rate of a list in bytes per second: 8 kbit/s.
const minListRate = 1 << 10

// newStallTimer returns a timer that calls cancel after a wait of limit, or never if limit is 0. It
// starts no timer.
func newStallTimer(limit time.Duration, cancel context.CancelFunc) *stallTimer {
	return &stallTimer{limit: limit, cancel: cancel}
}

// beginWait begins a wait.
func (s *stallTimer) beginWait() {
	if s.limit <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	// Set it before the timer, so that the timer never fires before the limit.
	s.waitStart = time.Now()
	if s.timer == nil {
		s.timer = time.AfterFunc(s.waitLimitLocked(), s.expire)
	} else {
		s.timer.Reset(s.waitLimitLocked())
	}
}

// waitLimitLocked returns how long the wait that begins now may take.
func (s *stallTimer) waitLimitLocked() time.Duration {
	return min(s.limit, max(4*s.limit+s.allowance-s.waited, 0))
}

// endWait ends a wait, because headers or bytes have arrived.
func (s *stallTimer) endWait(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waitStart.IsZero() {
		s.waited += time.Since(s.waitStart)
	}
	s.allowance += time.Duration(bytes) * time.Second / minListRate
	s.endWaitLocked()
}

// stop ends the current wait and prevents later ones. After it has returned, cancel is not called
// any more.
func (s *stallTimer) stop() {
	s.mu.Lock()
	s.stopped = true
	s.endWaitLocked()
	s.mu.Unlock()
	s.canceling.Wait()
}

func (s *stallTimer) endWaitLocked() {
	s.waitStart = time.Time{}
	if s.timer != nil {
		s.timer.Stop()
	}
}

// err returns an error if the timer has ended the request, else nil. After stop the result does not
// change.
func (s *stallTimer) err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.expired:
		return nil
	case s.waited > s.limit+s.allowance:
		return fmt.Errorf(
			"%w: less than %d bytes per second for %s", ErrStalled, minListRate,
			s.waited.Round(time.Second))
	}
	return fmt.Errorf("%w: no data for %s", ErrStalled, s.limit)
}

// expire is the timer's function. It may run late, when there is no wait or a newer one.
func (s *stallTimer) expire() {
	s.mu.Lock()
	if s.waitStart.IsZero() || time.Since(s.waitStart) < s.waitLimitLocked() {
		s.mu.Unlock()
		return
	}
	s.expired = true
	s.canceling.Add(1)
	s.mu.Unlock()
	defer s.canceling.Done()
	s.cancel() // not under the lock: it may run code of the caller's context
}

// reader returns body with each Read timed. It also ends the wait for the headers.
func (s *stallTimer) reader(body io.Reader) io.Reader {
	if s.limit <= 0 {
		return body
	}
	s.endWait(0)
	return &stallReader{stall: s, body: body}
}

type stallReader struct {
	stall *stallTimer
	body  io.Reader
}

func (r *stallReader) Read(buffer []byte) (int, error) {
	r.stall.beginWait()
	n, err := r.body.Read(buffer)
	r.stall.endWait(n)
	return n, err
}
