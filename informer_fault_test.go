package cache

import (
	"context"
	"sync"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// counts are how often a handler was called.
type counts struct{ adds, updates, deletes int }

// tally is a handler that counts.
type tally struct {
	mu    sync.Mutex
	calls counts
}

func (c *tally) OnAdd(any, bool)   { c.count(counts{adds: 1}) }
func (c *tally) OnUpdate(any, any) { c.count(counts{updates: 1}) }
func (c *tally) OnDelete(any)      { c.count(counts{deletes: 1}) }

// count adds to the counts and returns them.
func (c *tally) count(more counts) counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.adds += more.adds
	c.calls.updates += more.updates
	c.calls.deletes += more.deletes
	return c.calls
}

// crashing has apimachinery's panic handlers note what they get, and its ReallyCrash be
// what it is by default.
func crashing(t *testing.T) (got *[]any) {
	t.Helper()
	surviving(t)
	utilruntime.ReallyCrash = true
	got = &[]any{}
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, value any) { *got = append(*got, value) })
	return got
}
