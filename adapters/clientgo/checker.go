package clientgo

import (
	"sync"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// doneChecker presents a checker to client-go, whose WaitFor takes Done for success. The
// checkers of our informers are also done when that never will come, and have another
// channel that is not.
func doneChecker(checker cache.DoneChecker) toolscache.DoneChecker {
	if successful, ok := checker.(succeeding); ok {
		return successOnly{checker, successful}
	}
	if failing, ok := checker.(cache.DoneError); ok {
		return &forwarded{checker: checker, failing: failing}
	}
	return checker
}

// succeeding is a checker of this library's informers and registrations: Succeeded is closed upon success alone.
type succeeding interface{ Succeeded() <-chan struct{} }

type successOnly struct {
	checker    cache.DoneChecker
	successful succeeding
}

func (s successOnly) Name() string { return s.checker.Name() }

func (s successOnly) Done() <-chan struct{} { return s.successful.Succeeded() }

// forwarded is of a checker that can end in vain and has one channel for both ends. No
// informer of this library has such.
type forwarded struct {
	checker cache.DoneChecker
	failing cache.DoneError

	once    sync.Once
	success chan struct{}
}

func (f *forwarded) Name() string { return f.checker.Name() }

// Done is closed once the checker is done without an error. The goroutine that sees to it
// is the checker's: it ends when that is done, one way or the other, as a DoneError
// promises to be. Nothing waits for it, nor need it: it has no effect but the channel.
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
