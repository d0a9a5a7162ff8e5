package cache

import "sync"

// syncChecker is a DoneChecker that may come to an end without having come true. It
// implements DoneError.
type syncChecker struct {
	name string
	// succeeded is closed if it comes true, over in any case.
	succeeded, over chan struct{}

	mu  sync.Mutex
	end bool
	err error
}

func newSyncChecker(name string) *syncChecker {
	return &syncChecker{name: name, succeeded: make(chan struct{}), over: make(chan struct{})}
}

// Name says what is waited for.
func (s *syncChecker) Name() string { return s.name }

// Done is closed once it has come true, or never will.
func (s *syncChecker) Done() <-chan struct{} { return s.over }

// Succeeded implements SuccessChecker.
func (s *syncChecker) Succeeded() <-chan struct{} { return s.succeeded }

// Err is why it never will come true; nil if it has, or still may.
func (s *syncChecker) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// succeed makes it true; fail ends it otherwise. What comes first counts.
func (s *syncChecker) succeed() { s.finish(nil) }

func (s *syncChecker) fail(err error) { s.finish(err) }

func (s *syncChecker) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end {
		return
	}
	s.end, s.err = true, err
	if err == nil {
		close(s.succeeded)
	}
	close(s.over)
}

func (s *syncChecker) hasSucceeded() bool {
	select {
	case <-s.succeeded:
		return true
	default:
		return false
	}
}
