package simulation

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The check of time: no reflector waits longer before a request than client-go would (B26, B27), and
// reflectors that a source has sent away for the same time do not return in the same instant.

// Client-go's backoff: 800 ms, doubled up to 30 s, with a jitter of up to once more, and reset after
// two healthy minutes. After a watch that has ended without an error it has no pause.
const (
	clientGoFirst   = 800 * time.Millisecond
	clientGoMost    = 30 * time.Second
	clientGoJitter  = 2
	clientGoHealthy = 2 * time.Minute
)

// clientGoPause is client-go's longest pause after so many failures in a row.
func clientGoPause(failures int) time.Duration {
	pause := clientGoFirst
	for range failures - 1 {
		pause = min(2*pause, clientGoMost)
	}
	return clientGoJitter * pause
}

const (
	// atOnce is the longest pause after a watch that lived for 10 s.
	atOnce = 300 * time.Millisecond
	// betweenWatches is the time from one watch to the next within the limit of 11 in a minute.
	betweenWatches = 6 * time.Second
	// polling is the time between two lists of a source that cannot be watched.
	polling = 30 * time.Second
)

// pauseCheck follows the requests of a tap.
type pauseCheck struct {
	tap *tap
	// slack is for functions that are slow.
	slack time.Duration
	// failures is the number of failures since two healthy minutes.
	failures int
	// failed is the end of the last failed request, began that of the first in the series.
	failed time.Time
	began  time.Time
	// last is the last request that is no check, ended its end.
	last  *request
	ended time.Time
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
	if most := c.most(next) + c.slack; pause > most {
		w := c.tap.mirror.world
		w.fail("B27: %s asked for nothing for %v after %v, client-go would for at most %v",
			c.tap.mirror.name, pause, c.ended.Sub(w.start), most)
	}
}

// waitFor notes a request that is no request of its own: a check beside the last one, or a page.
func (c *pauseCheck) waitFor(r *request) {
	end := r.at.Add(r.duration())
	if end.After(c.ended) {
		c.ended = end
	}
}

// most is the longest allowed pause after the last request.
func (c *pauseCheck) most(next *request) time.Duration {
	pause := max(betweenWatches, clientGoPause(c.failures))
	isResumed := !c.last.isStream && !next.list && !next.isStream
	followsWork := isResumed && c.last.workedForShort()
	switch {
	case c.last.wasLongLived():
		pause = atOnce
	case followsWork && c.recent() < laterMinuteMoving: // checks count as well
		pause = betweenWatches
	case c.recent() >= laterMinute:
		pause = pauseAtMost // G13 allows three requests in a minute, and they have been made
	case c.failures > 0 && c.ended.Sub(c.began) > time.Minute:
		pause = pauseAtMost
	case c.hasFailed() && c.last.ended.IsZero():
		pause = clientGoPause(c.failures)
	}
	if c.isPolling {
		pause = max(pause, polling)
	}
	return max(pause, c.last.retryAfter+c.last.retryAfter/10)
}

// recent is the number of requests that were made or ended in the minute before the end of the last
// one.
func (c *pauseCheck) recent() int {
	n := 0
	for _, r := range c.tap.requests {
		hasBegun := !r.at.After(c.ended)
		end := r.at.Add(r.duration())
		if hasBegun && c.ended.Sub(end) < time.Minute {
			n++
		}
	}
	return n
}

// hasFailed says whether the last request failed without having been of use.
func (c *pauseCheck) hasFailed() bool {
	return !c.last.wasLongLived() && (c.last.failed || c.last.stopped || c.tap.mirror.reportedAt(c.ended))
}

// end notes the end of a request.
func (c *pauseCheck) end(r *request) {
	if r.at.Sub(c.failed) >= clientGoHealthy {
		c.failures = 0
	}
	c.last = r
	c.ended = r.at.Add(r.duration())
	c.isPolling = c.isPolling || r.isNotAllowed
	if !r.list && r.duration() >= clientGoHealthy {
		c.failures = 0
	}
	if !c.hasFailed() {
		return
	}
	if c.failures == 0 {
		c.began = r.at
	}
	c.failures++
	c.failed = c.ended
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
