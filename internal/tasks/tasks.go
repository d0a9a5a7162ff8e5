// Package tasks runs goroutines that have an owner. The owner waits for them, and a panic of one of them
// comes out of that wait.
package tasks

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// crashAfter is how long a panic waits for what hangs: a handler, or a source that ignores its context.
const crashAfter = 30 * time.Second

// Group owns goroutines. Make one with New. Go and Lead may be called concurrently, Wait once.
type Group struct {
	clock   clock.Clock
	cancel  func()
	wrap    func(value any) any
	running sync.WaitGroup

	mu sync.Mutex
	// live counts the functions that have not returned, and the owner until it waits. quiet is closed when
	// it is 0.
	live     int
	quiet    chan struct{}
	panicked any
}

// New returns a group. A panic of one of its functions calls cancel, which has to end the others and
// the owner. wrap makes the value that Wait panics with; it is called on the stack that panicked.
func New(clock clock.Clock, cancel func(), wrap func(value any) any) *Group {
	return &Group{clock: clock, cancel: cancel, wrap: wrap, live: 1, quiet: make(chan struct{})}
}

// Go runs f on a goroutine of its own.
func (g *Group) Go(f func()) {
	g.mu.Lock()
	g.live++
	g.mu.Unlock()
	g.running.Go(func() {
		defer func() {
			value := recover()
			if value != nil {
				g.fail(value)
			}
			g.done()
			if value != nil {
				g.crash()
			}
		}()
		f()
	})
}

// Lead runs f on the owner's goroutine. A panic of f comes out of Wait.
func (g *Group) Lead(f func()) {
	defer func() {
		if value := recover(); value != nil {
			g.fail(value)
			g.running.Go(g.crash)
		}
	}()
	f()
}

// Wait waits for all goroutines, and panics with the first of their panics.
func (g *Group) Wait() {
	g.done()
	g.running.Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}
}

func (g *Group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.live--; g.live == 0 {
		close(g.quiet)
	}
}

// fail keeps the first panic, since later ones may be its consequences.
func (g *Group) fail(value any) {
	value = g.wrap(value)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.panicked == nil {
		g.panicked = value
	}
}

// crash ends the others after a panic. If something hangs, so that the panic cannot come out of Wait, it
// panics here, which ends the process.
func (g *Group) crash() {
	g.cancel()
	timer := g.clock.NewTimer(crashAfter)
	defer timer.Stop()
	select {
	case <-g.quiet:
	case <-timer.C():
		g.mu.Lock()
		defer g.mu.Unlock()
		panic(g.panicked)
	}
}
