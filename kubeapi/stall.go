package kubeapi

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// ErrStalled: no byte of a list arrived for Options.StallTimeout, a list came too slowly, or the rest of a watch frame did not arrive in time
// (10 s and a second for each 8 KiB). The connection counts as half open.
var ErrStalled error = &wire.Sentinel{Text: "the answer stalled", Cause: wire.CauseStalled}

// stall ends a request that makes its caller wait too long for headers, or for a byte of the body. While nobody reads, the clock
// stands still; any byte starts it again, but all waits together may take four times the limit and a second for each listRate
// bytes. One goroutine at a time waits, and fired may be called at any time.
type stall struct {
	limit  time.Duration
	cancel context.CancelFunc

	mu      sync.Mutex
	timer   *time.Timer // nil before the first wait
	since   time.Time   // when the wait under way began; zero while nobody waits
	waited  time.Duration
	earned  time.Duration // by the bytes that came
	expired bool
	stopped bool

	ending sync.WaitGroup // of the timer's goroutine, once it calls cancel
}

// listRate is how many bytes a second are enough for a list of any size: 8 kbit/s.
const listRate = 1 << 10

// newStall makes one that ends a request by cancel after a wait of limit, or never if
// limit is 0. It starts nothing yet.
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
	// Before the timer is set, so that it never fires short of the limit.
	s.since = time.Now()
	if s.timer == nil {
		s.timer = time.AfterFunc(s.patienceLocked(), s.expire)
	} else {
		s.timer.Reset(s.patienceLocked())
	}
}

// patienceLocked is how long the wait that begins may take.
func (s *stall) patienceLocked() time.Duration {
	return min(s.limit, max(4*s.limit+s.earned-s.waited, 0))
}

// arrived ends a wait, because so many bytes have come, or the headers.
func (s *stall) arrived(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.since.IsZero() {
		s.waited += time.Since(s.since)
	}
	s.earned += time.Duration(bytes) * time.Second / listRate
	s.endWaitLocked()
}

// stop ends the wait, if there is one, and all later ones. Once it has returned,
// nothing calls cancel any more.
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

// fired returns the error of a request that was ended here, nil for others. It stays.
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

// expire is the timer's. It may come late, after the wait that it was set for: then
// nobody waits, or waits for something newer.
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
	s.cancel() // not under the lock: it detaches the request from the caller's context, whose code that may run
}

// reader is body with every Read of it guarded. With the body its headers are there, so the
// wait for those is over.
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
