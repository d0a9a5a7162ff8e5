package clientgo

import (
	"sync"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// doneChecker returns a checker for client-go, whose WaitFor takes Done for success. The Done of
// our informers' checkers is also closed if success has become impossible; their Succeeded is not.
func doneChecker(checker cache.DoneChecker) toolscache.DoneChecker {
	if successful, ok := checker.(succeeding); ok {
		return successOnly{checker, successful}
	}
	if failing, ok := checker.(cache.DoneError); ok {
		return &forwarded{checker: checker, failing: failing}
	}
	return checker
}

// succeeding is implemented by the checkers of this library's informers and registrations.
// Succeeded is closed only on success.
type succeeding interface{ Succeeded() <-chan struct{} }

type successOnly struct {
	checker    cache.DoneChecker
	successful succeeding
}

func (s successOnly) Name() string { return s.checker.Name() }

func (s successOnly) Done() <-chan struct{} { return s.successful.Succeeded() }

// forwarded is for a checker that can fail and has one channel for success and failure. No informer
// of this library has one.
type forwarded struct {
	checker cache.DoneChecker
	failing cache.DoneError

	once    sync.Once
	success chan struct{}
}

func (f *forwarded) Name() string { return f.checker.Name() }

// Done is closed once the checker is done without an error. Its goroutine ends when the checker is
// done, as a DoneError must be at some time. Nothing waits for the goroutine; it only closes the
// channel.
func (f *forwarded) Done() <-chan struct{} {
	f.once.Do(func() {
		f.success = make(chan struct{})
		if toolscache.IsDone(f.checker) {
			f.forward()
			return
		}
		go f.forward()
	})
	return f.success
}

func (f *forwarded) forward() {
	<-f.checker.Done()
	if f.failing.Err() == nil {
		close(f.success)
	}
}
