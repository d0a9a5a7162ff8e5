// Package tasks runs goroutines that have an owner. The owner waits for them, and panics if one of
// them has.
package tasks

import (
	"sync"
	"time"
)

// crashAfter is how long a panic waits for functions that hang: a handler, or a source that ignores
// its context.
const crashAfter = 30 * time.Second

// Group is a group of goroutines. Go and Lead may be called concurrently, Wait once.
type Group struct {
	// Cancel is called after a panic. The other functions and the owner must return then.
	Cancel func()
	// Wrap returns the value that Wait panics with. It is called on the stack that panicked.
	Wrap func(value any) any

	running sync.WaitGroup
	// failed is done once: later panics may be consequences of the first.
	failed   sync.Once
	panicked any
	crash    *time.Timer
}

// Go runs f on a goroutine of its own.
func (g *Group) Go(f func()) {
	g.running.Go(func() {
		defer g.recover()
		f()
	})
}

// Lead runs f on the owner's goroutine. It returns if f panics; Wait panics instead.
func (g *Group) Lead(f func()) {
	defer g.recover()
	f()
}

// recover keeps a panic for Wait and ends the other functions. If one of them hangs, so that Wait
// does not return, the process ends.
func (g *Group) recover() {
	value := recover()
	if value == nil {
		return
	}
	g.failed.Do(func() {
		g.panicked = g.Wrap(value)
		g.crash = time.AfterFunc(crashAfter, func() { panic(g.panicked) })
		g.Cancel()
	})
}

// Wait waits for all goroutines, and panics with the first of their panics.
func (g *Group) Wait() {
	g.running.Wait()
	if g.panicked != nil {
		g.crash.Stop()
		panic(g.panicked)
	}
}
