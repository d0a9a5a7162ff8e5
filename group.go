package cache

import (
	"runtime/debug"
	"sync"
)

// group owns goroutines: it waits for them and brings a panic of one of them to
// whoever waits, with the stack of the place that panicked. The zero value is
// ready.
type group struct {
	running sync.WaitGroup

	mu       sync.Mutex
	panicked *PanicError
}

// start runs f on a goroutine and calls after when f has returned or panicked.
func (g *group) start(after func(), f func()) {
	g.running.Go(func() {
		defer after()
		defer func() {
			if value := recover(); value != nil {
				g.caught(value)
			}
		}()
		f()
	})
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

// hasPanicked says whether one of the goroutines has.
func (g *group) hasPanicked() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.panicked != nil
}

// wait waits for all goroutines, and panics if one of them has.
func (g *group) wait() {
	g.running.Wait()
	if g.panicked != nil {
		panic(g.panicked)
	}
}
