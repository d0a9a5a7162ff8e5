package kubeapi

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/watchmirror/cache/internal/apiclient"
)

// ErrStalled: a list brought no byte for Options.StallTimeout or came too slowly, or a watch frame was not complete in
// time (10 s plus a second for each 8 KiB). The connection is treated as half open.
var ErrStalled error = &apiclient.Sentinel{Text: "the answer stalled", Cause: apiclient.CauseStalled}

// stall ends a request that waits too long for headers or for a byte of the body. Each wait may take limit; all waits
// together may take four times limit plus a second for each listRate bytes. Time outside a wait does not count. One
// goroutine at a time waits; fired may be called concurrently.
type stall struct {
	limit  time.Duration
	cancel context.CancelFunc

	mu      sync.Mutex
	timer   *time.Timer // nil before the first wait
	since   time.Time   // start of the current wait; zero if there is none
	waited  time.Duration
	earned  time.Duration // time allowed for the received bytes
	expired bool
	stopped bool

	ending sync.WaitGroup // the timer's goroutine, while it calls cancel
}

// listRate is the minimum rate of a list in bytes per second: 8 kbit/s.
const listRate = 1 << 10

// newStall returns a stall that calls cancel after a wait of limit, or never if limit is 0. It starts no timer.
func newStall(limit time.Duration, cancel context.CancelFunc) *stall {
	return &stall{limit: limit, cancel: cancel}
}

// waiting begins a wait.
func (s *stall) waiting() {
	if s.limit <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	// Set it before the timer, so that the timer never fires before the limit.
	s.since = time.Now()
	if s.timer == nil {
		s.timer = time.AfterFunc(s.patienceLocked(), s.expire)
	} else {
		s.timer.Reset(s.patienceLocked())
	}
}

// patienceLocked returns how long the wait that begins now may take.
func (s *stall) patienceLocked() time.Duration {
	return min(s.limit, max(4*s.limit+s.earned-s.waited, 0))
}

// arrived ends a wait, because headers or bytes have arrived.
func (s *stall) arrived(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		s.waited += time.Since(s.since)
	}
	s.earned += time.Duration(bytes) * time.Second / listRate
	s.endWaitLocked()
}

// stop ends the current wait and prevents later ones. After it has returned, cancel is not called any more.
func (s *stall) stop() {
	s.mu.Lock()
	s.stopped = true
	s.endWaitLocked()
	s.mu.Unlock()
	s.ending.Wait()
}

func (s *stall) endWaitLocked() {
	s.since = time.Time{}
	if s.timer != nil {
		s.timer.Stop()
	}
}

// fired returns the error of a request that was ended by a stall, else nil. The result does not change any more.
func (s *stall) fired() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.expired:
		return nil
	case s.waited > s.limit+s.earned:
		return fmt.Errorf("%w: less than %d bytes a second for %s", ErrStalled, listRate, s.waited.Round(time.Second))
	}
	return fmt.Errorf("%w: nothing for %s", ErrStalled, s.limit)
}

// expire is the timer's function. It may run late, when there is no wait or a newer one.
func (s *stall) expire() {
	s.mu.Lock()
	if s.since.IsZero() || time.Since(s.since) < s.patienceLocked() {
		s.mu.Unlock()
		return
	}
	s.expired = true
	s.ending.Add(1)
	s.mu.Unlock()
	defer s.ending.Done()
	s.cancel() // not under the lock: it may run code of the caller's context
}

// reader returns body with each Read guarded. It also ends the wait for the headers.
func (s *stall) reader(body io.Reader) io.Reader {
	if s.limit <= 0 {
		return body
	}
	s.arrived(0)
	return &stallReader{stall: s, body: body}
}

type stallReader struct {
	stall *stall
	body  io.Reader
}

func (r *stallReader) Read(buffer []byte) (int, error) {
	r.stall.waiting()
	n, err := r.body.Read(buffer)
	r.stall.arrived(n)
	return n, err
}
