package check

import (
	"time"

	"github.com/watchmirror/cache/internal/simulation/world"
)

// The check of time: after a watch that worked no reflector waits longer than client-go would
// (B27), and reflectors that a source has sent away for the same time do not return in the same
// instant.

const (
	// PauseAtMost is the longest pause without a Retry-After (G1), plus a second for a restored
	// source.
	PauseAtMost = 61 * time.Second
	// Polling is the time between two lists of a source that cannot be watched.
	Polling = 30 * time.Second
	// atOnce is the longest pause after a watch that lived for 10 s.
	atOnce = 300 * time.Millisecond
)

// pauseCheck follows the requests of a reflector.
type pauseCheck struct {
	mirror  *Mirror
	history world.History
	// slack is for functions that are slow.
	slack time.Duration
	// last is the last request that is no check, ended its end.
	last  *world.Request
	ended time.Time
	// checkedAfter is true if a check of the version ended with the last request or later. An older
	// version is a failure of its own.
	checkedAfter bool
	// isPolling is true once a watch was not allowed.
	isPolling bool
}

// checkPauses checks the pauses between all requests of a mirror.
func (m *Mirror) checkPauses() {
	for _, h := range m.Client.Histories() {
		check := pauseCheck{mirror: m, history: h, slack: m.slack()}
		check.run()
	}
}

// run checks the pauses between all requests of a reflector.
func (c *pauseCheck) run() {
	for _, r := range c.history.Requests {
		if r.Check {
			c.waitFor(r)
			continue
		}
		c.begin(r)
		c.end(r)
	}
	if !c.mirror.Stopped() {
		c.begin(&world.Request{At: time.Now()})
	}
}

// begin checks the pause before a request.
func (c *pauseCheck) begin(next *world.Request) {
	if c.last == nil || c.last.Open {
		return
	}
	for _, page := range c.history.Pages {
		if page.At.Before(next.At) {
			c.waitFor(page)
		}
	}
	pause := next.At.Sub(c.ended)
	if most := c.most() + c.slack; pause > most {
		w := c.mirror.World
		w.Fail("B27: %s asked for nothing for %v after %v, client-go would for at most %v",
			c.mirror.Name, pause, c.ended.Sub(w.Start), most)
	}
}

// waitFor notes a request that is no request of its own: a check beside the last one, or a page.
func (c *pauseCheck) waitFor(r *world.Request) {
	end := r.At.Add(r.Duration())
	if r.Check && !end.Before(c.ended) {
		c.checkedAfter = true
	}
	if end.After(c.ended) {
		c.ended = end
	}
}

// most is the longest allowed pause after the last request. After a watch that lived for 10 s it is
// client-go's, unless a check of the version followed. A shorter one counts in the limits of G13,
// which requests before it may have reached, and a list after it keeps the limit of 3 a minute. So
// the pause after it, as after anything else, is only bounded.
func (c *pauseCheck) most() time.Duration {
	pause := PauseAtMost
	if wasLongLived(c.last) && !c.isPolling && !c.checkedAfter {
		pause = atOnce
	}
	return max(pause, c.last.RetryAfter+c.last.RetryAfter/10)
}

// end notes the end of a request.
func (c *pauseCheck) end(r *world.Request) {
	c.last = r
	c.checkedAfter = false
	c.ended = r.At.Add(r.Duration())
	c.isPolling = c.isPolling || r.IsNotAllowed
}

// checkReturns checks that no two reflectors that were sent away at one moment return at one moment
// (G13).
func checkReturns(mirrors []*Mirror) {
	seen := returns{}
	for _, m := range mirrors {
		for _, h := range m.Client.Histories() {
			for _, wait := range h.Waits {
				seen.check(m, wait)
			}
		}
	}
}

// returns are the mirrors whose reflectors have returned after a Retry-After, by the beginning and
// the end of their pauses.
type returns map[[2]time.Time]*Mirror

func (r returns) check(m *Mirror, wait world.Wait) {
	waited := wait.Until.Sub(wait.Since)
	isRetry := waited >= wait.Duration && waited <= wait.Duration+wait.Duration/10
	if !isRetry {
		return // it returned for another reason
	}
	pause := [2]time.Time{wait.Since, wait.Until}
	if other := r[pause]; other != nil {
		m.World.Fail("G13: %s and %s return in one instant, %v after a Retry-After",
			other.Name, m.Name, waited)
	}
	r[pause] = m
}
