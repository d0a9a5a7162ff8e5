package kubeapi

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// ErrStalled: no byte of a list arrived for Options.StallTimeout, or the rest of a watch frame did not arrive in time
// (10 s and a second for each 8 KiB). The connection counts as half open.
var ErrStalled error = &wire.Sentinel{Text: "the answer stalled", Cause: wire.CauseStalled}

// stall ends a request that makes its caller wait too long for headers, or for a byte of the body. While nobody reads, the clock
// stands still; any byte starts it again. One goroutine at a time waits, and fired may be called at any time.
type stall struct {
	limit  time.Duration
	cancel context.CancelFunc

	mu      sync.Mutex
	timer   *time.Timer // nil before the first wait
	since   time.Time   // when the wait under way began; zero while nobody waits
	expired bool
	stopped bool

	ending sync.WaitGroup // of the timer's goroutine, once it calls cancel
}

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
		s.timer = time.AfterFunc(s.limit, s.expire)
	} else {
		s.timer.Reset(s.limit)
	}
}

// arrived ends a wait, because what was waited for has come.
func (s *stall) arrived() {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// fired says whether the request was ended here. It stays true.
func (s *stall) fired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expired
}

// expire is the timer's. It may come late, after the wait that it was set for: then
// nobody waits, or waits for something newer.
func (s *stall) expire() {
	s.mu.Lock()
	if s.since.IsZero() || time.Since(s.since) < s.limit {
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
	s.arrived()
	return &stallReader{stall: s, body: body}
}

type stallReader struct {
	stall *stall
	body  io.Reader
}

func (r *stallReader) Read(buffer []byte) (int, error) {
	r.stall.waiting()
	defer r.stall.arrived()
	return r.body.Read(buffer)
}
