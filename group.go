package cache

import (
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// group owns goroutines: it waits for them and brings a panic of one of them to
// whoever waits, with the stack of the place that panicked. The zero value is
// ready.
type group struct {
	running sync.WaitGroup

	mu       sync.Mutex
	panicked *PanicError
	// live counts the functions that have not returned, waiting is true once the owner
	// waits for them, and quiet, if somebody asked for it, is closed when both are so.
	live    int
	waiting bool
	quiet   chan struct{}
}

// start runs f on a goroutine and calls after when f has returned or panicked.
func (g *group) start(after func(), f func()) {
	g.mu.Lock()
	g.live++
	g.mu.Unlock()
	g.running.Go(func() {
		defer after()
		defer g.returned()
		defer func() {
			if value := recover(); value != nil {
				g.caught(value)
			}
		}()
		f()
	})
}

func (g *group) returned() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live--
	g.closeQuietLocked()
}

func (g *group) closeQuietLocked() {
	if g.quiet != nil && g.waiting && g.live == 0 {
		close(g.quiet)
		g.quiet = nil
	}
}

// caught keeps the first panic: those after it may only be its consequences.
func (g *group) caught(value any) {
	panicked, ok := value.(*PanicError)
	if !ok {
		panicked = &PanicError{Value: value, Stack: debug.Stack()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.panicked == nil {
		g.panicked = panicked
	}
}

// crashAfter is how long a panic waits for what hangs: a handler, or a source that ignores
// its context. It is as long as such a source is given before it is reported.
const crashAfter = 30 * time.Second

// failure is the first panic; nil if there was none.
func (g *group) failure() *PanicError {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.panicked
}

// crash makes sure that a panic ends the process, or comes out of wait, whatever hangs. It
// is called as the after of a goroutine; cancel tells the others to end. If they, and the
// owner, have not done so in time, the panic goes on here. Without a panic it does nothing.
func (g *group) crash(clock clock.Clock, cancel func()) {
	panicked := g.failure()
	if panicked == nil {
		return
	}
	cancel()
	timer := clock.NewTimer(crashAfter)
	defer timer.Stop()
	select {
	case <-g.untilQuiet():
	case <-timer.C():
		panic(panicked)
	}
}

// lead runs f on the owner's goroutine, before it waits. A panic of f is as one of the
// others: it comes out of wait, or out of crash if that takes too long.
func (g *group) lead(clock clock.Clock, cancel func(), f func()) {
	defer func() {
		if value := recover(); value != nil {
			g.caught(value)
			g.start(func() { g.crash(clock, cancel) }, func() {})
		}
	}()
	f()
}

// untilQuiet is closed when the owner waits and every function has returned.
func (g *group) untilQuiet() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.quiet == nil {
		g.quiet = make(chan struct{})
	}
	quiet := g.quiet
	g.closeQuietLocked()
	return quiet
}

// wait waits for all goroutines, and panics if one of them has.
func (g *group) wait() {
	g.mu.Lock()
	g.waiting = true
	g.closeQuietLocked()
	g.mu.Unlock()
	g.running.Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}
}
