package simulation

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The check of time: after a watch that worked no reflector waits longer than client-go would (B27),
// and reflectors that a source has sent away for the same time do not return in the same instant.

const (
	// polling is the time between two lists of a source that cannot be watched.
	polling = 30 * time.Second
	// atOnce is the longest pause after a watch that lived for 10 s.
	atOnce = 300 * time.Millisecond
)

// pauseCheck follows the requests of a tap.
type pauseCheck struct {
	tap *tap
	// slack is for functions that are slow.
	slack time.Duration
	// last is the last request that is no check, ended its end.
	last  *request
	ended time.Time
	// checkedAfter is true if a check of the version ended with the last request or later. An older
	// version is a failure of its own.
	checkedAfter bool
	// isPolling is true once a watch was not allowed.
	isPolling bool
}

// checkPauses checks the pauses between all requests of all mirrors.
func (w *world) checkPauses() {
	for _, m := range w.mirrors {
		for _, t := range m.taps {
			t.checkPauses()
		}
	}
}

func (t *tap) checkPauses() {
	t.mu.Lock()
	defer t.mu.Unlock()
	check := pauseCheck{tap: t, slack: 33 * 2 * time.Duration(t.mirror.world.slowest.Load())}
	for _, r := range t.requests {
		if r.check {
			check.waitFor(r)
			continue
		}
		check.begin(r)
		check.end(r)
	}
	if !t.mirror.stopped() {
		check.begin(&request{at: time.Now()})
	}
}

// begin checks the pause before a request.
func (c *pauseCheck) begin(next *request) {
	if c.last == nil || c.last.open {
		return
	}
	for _, page := range c.tap.pages {
		if page.at.Before(next.at) {
			c.waitFor(page)
		}
	}
	pause := next.at.Sub(c.ended)
	if most := c.most() + c.slack; pause > most {
		w := c.tap.mirror.world
		w.fail("B27: %s asked for nothing for %v after %v, client-go would for at most %v",
			c.tap.mirror.name, pause, c.ended.Sub(w.start), most)
	}
}

// waitFor notes a request that is no request of its own: a check beside the last one, or a page.
func (c *pauseCheck) waitFor(r *request) {
	end := r.at.Add(r.duration())
	if r.check && !end.Before(c.ended) {
		c.checkedAfter = true
	}
	if end.After(c.ended) {
		c.ended = end
	}
}

// most is the longest allowed pause after the last request. After a watch that lived for 10 s it is
// client-go's, unless a check of the version followed. After anything else the limits of G13 may have been reached by requests of another
// kind, so it is only bounded.
func (c *pauseCheck) most() time.Duration {
	pause := pauseAtMost
	if c.last.wasLongLived() && !c.isPolling && !c.checkedAfter {
		pause = atOnce
	}
	return max(pause, c.last.retryAfter+c.last.retryAfter/10)
}

// end notes the end of a request.
func (c *pauseCheck) end(r *request) {
	c.last = r
	c.checkedAfter = false
	c.ended = r.at.Add(r.duration())
	c.isPolling = c.isPolling || r.isNotAllowed
}

// returns are the ends of the pauses that failures with a Retry-After began.
type returns struct {
	mu sync.Mutex
	// since has, for the moment of a failure, the moments at which reflectors returned.
	since map[time.Time]map[time.Time]*tap
}

// waitLocked notes the Retry-After of a failed request.
func (t *tap) waitLocked(request *request, err error) {
	seconds, hasDelay := apierrors.SuggestsClientDelay(err)
	if hasDelay && seconds > 0 {
		request.retryAfter = time.Duration(seconds) * time.Second
		t.waitsSince = time.Now()
		t.waitsFor = request.retryAfter
	}
	request.isNotAllowed = apierrors.IsMethodNotSupported(err)
}

// returnLocked notes that the next request is made.
func (t *tap) returnLocked() {
	if t.waitsSince.IsZero() {
		return
	}
	since := t.waitsSince
	t.waitsSince = time.Time{}
	waited := time.Since(since)
	isRetry := waited >= t.waitsFor && waited <= t.waitsFor+t.waitsFor/10
	if isRetry { // else it returns for another reason
		t.mirror.world.noteReturn(t, since)
	}
}

// noteReturn checks that no two reflectors that were sent away at one moment return at one moment.
func (w *world) noteReturn(t *tap, since time.Time) {
	w.returns.mu.Lock()
	defer w.returns.mu.Unlock()
	if w.returns.since == nil {
		w.returns.since = map[time.Time]map[time.Time]*tap{}
	}
	at := w.returns.since[since]
	if at == nil {
		at = map[time.Time]*tap{}
		w.returns.since[since] = at
	}
	now := time.Now()
	if other := at[now]; other != nil && other != t {
		w.fail("G13: %s and %s return in one instant, %v after a Retry-After",
			other.mirror.name, t.mirror.name, now.Sub(since))
	}
	at[now] = t
}
