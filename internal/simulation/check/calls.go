package check

import (
	"sync"
	"time"
)

// Calls are a mirror's calls of user code: source, handlers, transforms, index functions. After
// its context has ended a run waits for running calls and begins no others (G9).
type Calls struct {
	mirror *Mirror

	mu      sync.Mutex
	running int
	// nests is true if user code calls the library, which calls user code.
	nests    bool
	lastLeft time.Time
	// outlived is true once a call into the source has outlived its context by more than
	// patience.
	outlived bool
	// cancelled is when the context of the run ended, returned when Run returned.
	cancelled, returned time.Time
}

// receivedGrace is the time for which events that were received before the end of the context are
// applied (G9).
const receivedGrace = 10 * time.Millisecond

// Patience is the time after which a call of the source that outlives its context is reported (G9).
const Patience = 30 * time.Second

// Begin records that a call begins; end records its end.
func (c *Calls) Begin(what string) (end func()) { return c.enter(what, false) }

// BeginSource is begin for a call into the source.
func (c *Calls) beginSource(what string) (end func()) { return c.enter(what, true) }

func (c *Calls) enter(what string, source bool) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.running++
	switch {
	case !c.returned.IsZero():
		c.mirror.World.Fail("G9: %s: %s was called after Run had returned", c.mirror.Name, what)
	case !c.cancelled.IsZero() && now.Sub(c.cancelled) > receivedGrace && !(c.nests && c.running > 1):
		c.mirror.World.Fail("G9: %s: %s was called %v after the context had ended",
			c.mirror.Name, what, now.Sub(c.cancelled))
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running--
		c.lastLeft = time.Now()
		if source && !c.cancelled.IsZero() && c.lastLeft.Sub(c.cancelled) > Patience {
			c.outlived = true
		}
	}
}

// Cancel notes that the context ends.
func (c *Calls) Cancel() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancelled.IsZero() {
		c.cancelled = time.Now()
	}
}

func (c *Calls) isCancelled() bool { return !c.cancelledAt().IsZero() }

// cancelledAt is when the context of the run ended.
func (c *Calls) cancelledAt() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cancelled
}

// RunReturned checks, when Run has returned, that it waited for running calls and nothing else.
func (c *Calls) RunReturned() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.returned = now
	switch {
	case c.cancelled.IsZero():
		c.mirror.World.Fail("G9: Run of %s returned while its context had not ended", c.mirror.Name)
	case c.running > 0:
		c.mirror.World.Fail("G9: Run of %s returned while %d calls were under way",
			c.mirror.Name, c.running)
	case !now.Equal(c.cancelled) && !now.Equal(c.lastLeft):
		c.mirror.World.Fail("G9: Run of %s returned %v after the end of its context; the last call had ended %v before",
			c.mirror.Name, now.Sub(c.cancelled), now.Sub(c.lastLeft))
	}
}
