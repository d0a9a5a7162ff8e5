package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/watchmirror/cache/internal/simulation/world"
)

// The limits of G13: requests in the first minute of a series of failures, and in any later minute.
const (
	shortWatch   = 10 * time.Second
	workingWatch = 6 * time.Second

	firstMinute       = 20
	laterMinute       = 3
	laterMinuteMoving = 11
)

// rateCheck checks the requests of a reflector.
type rateCheck struct {
	mirror   *Mirror
	requests []*world.Request
}

// checkRates checks each reflector of a mirror.
func (m *Mirror) checkRates() {
	for _, h := range m.Client.Histories() {
		check := rateCheck{mirror: m, requests: h.Requests}
		check.run()
	}
}

// run checks each stretch of requests that lasted less than 10 s, watches included. A longer
// request begins another stretch.
func (c *rateCheck) run() {
	from, began := 0, time.Time{}
	for i, r := range c.requests {
		if i == 0 {
			began = r.At
		}
		if c.isPolling(i) && r.At.Sub(c.lastFailure(i)) >= healthyTime {
			// Lists that work, in place of watches, end a series as well.
			c.checkStretch(began, from, i)
			from, began = i, r.At
		}
		// A list is one with the watch after it, however long it takes, unless a page failed.
		broken := r.Failed || i+1 < len(c.requests) && c.requests[i+1].FirstPage == r
		if r.Duration() >= shortWatch && !r.Check && (!r.List || broken) {
			c.checkStretch(began, from, i+1)
			// What follows may be because of how this one ended.
			from, began = i+1, r.At.Add(r.Duration())
		}
	}
	c.checkStretch(began, from, len(c.requests))
	c.checkDeadlines()
}

// healthyTime is the time without a failure that ends a series.
const healthyTime = 2 * time.Minute

// isPolling says whether request i takes part in polls: the last watch before it was not
// allowed, and request i is not the first list after that. It may be another try of a watch.
func (c *rateCheck) isPolling(i int) bool {
	polls := c.requests[:i]
	if c.requests[i].List {
		polls = c.requests[:i+1]
	}
	lists := 0
	for _, r := range slices.Backward(polls) {
		if !r.List {
			return r.IsNotAllowed && lists > 1
		}
		lists++
	}
	return false
}

// lastFailure returns when a request last failed before request i was made. One that is
// running, such as a check of the version that hangs, has not failed yet.
func (c *rateCheck) lastFailure(i int) time.Time {
	now := c.requests[i].At
	last := time.Time{}
	for _, r := range c.requests[:i] {
		end := failureKnown(r)
		if r.Failed && !r.IsNotAllowed && !end.After(now) && end.After(last) {
			last = end
		}
	}
	return last
}

// failureKnown returns when the reflector knew that a request had failed. A source that hangs may
// return long after the reflector has given up the call.
func failureKnown(r *world.Request) time.Time {
	end := r.At.Add(r.Duration())
	givenUp := r.Abandoned.Add(Patience)
	if !r.Abandoned.IsZero() && givenUp.Before(end) {
		return givenUp
	}
	return end
}

// checkDeadlines checks that no watch stayed open much longer than 30 s past its timeout (B19). Its
// events may be received late.
func (c *rateCheck) checkDeadlines() {
	const batches, batch = 8, 32 // before the deadline is looked at
	grace := 30*time.Second + 2*time.Minute + batches*batch*c.mirror.World.Functions.Slowest()
	for _, r := range c.requests {
		opened := !r.List && (r.Open || !r.Ended.IsZero())
		if opened && r.Duration()-r.Answered.Sub(r.At) > r.Timeout+grace {
			c.mirror.World.Fail("B19: %s left a watch open for %v that had asked for %v",
				c.mirror.Name, r.Duration(), r.Timeout)
		}
	}
}

// wasLongLived says whether it was a watch that was of use for so long that its end is no short
// one's. One whose first state never ended, or was of wrong types, was of none.
func wasLongLived(r *world.Request) bool {
	if r.List || r.Endless || r.Answered.IsZero() || r.Failed && r.Ended.IsZero() {
		return false
	}
	if r.Wrong && r.Items > 0 {
		return false
	}
	useful := r.Duration()
	if r.Events == 0 {
		useful -= r.Answered.Sub(r.At)
	}
	return useful >= shortWatch
}

// workedForShort says whether it was a short watch of some use: it advanced the version, lived for
// some seconds, or was closed without an error.
func workedForShort(r *world.Request) bool {
	if r.List || r.Answered.IsZero() || r.Duration() >= shortWatch {
		return false
	}
	closed := !r.Failed && !r.Ended.IsZero() && (r.Events > 0 || r.Ended.Sub(r.Answered) >= time.Second)
	return r.Moved || closed || r.Duration() >= workingWatch
}

// checkStretch checks the requests from one up to another as a stretch of failures that
// began at start. Its first minute may have begun before: what took 10 s may have failed,
// and a watch that lived for so long ends no run of failures, which takes two minutes.
func (c *rateCheck) checkStretch(start time.Time, from, to int) {
	found := c.exceeds(start, c.requests[from:to])
	if next := slices.IndexFunc(c.requests[from:to], func(r *world.Request) bool { return !r.Check }); found != "" && next >= 0 &&
		from > 0 && !c.requests[from-1].List && !c.requests[from-1].Failed &&
		c.exceeds(c.requests[from+next].At, c.requests[from:to]) == "" {
		return // a watch whose end was only acted on once slow handlers, or a deaf check, had let it
	}
	for i := from; found != "" && i < to && c.requests[i].At.Before(start); i++ {
		r := c.requests[i]
		if r.Check && (r.Failed || start.Sub(r.At) < shortWatch) && start.Sub(r.At) < time.Minute &&
			c.exceeds(r.At, c.requests[i:to]) == "" {
			return // the failures began with a check beside the watch before, or so soon after it that it is counted with them
		}
	}
	for i := from - 1; found != "" && i >= 0; i-- {
		began, first, ok := c.runFrom(i)
		if ok && start.Sub(began) < time.Minute && c.exceeds(began, c.requests[first:to]) == "" {
			return
		}
	}
	if found != "" && !c.mayHaveEndedLate(start, from, to) {
		c.mirror.World.Fail("G13: %s made %s", c.mirror.Name, found)
	}
}

// mayHaveEndedLate reports whether the requests keep the limits if a short watch among them counts
// as one that lived for 10 s: slow functions may have kept the reflector from seeing its end before.
func (c *rateCheck) mayHaveEndedLate(start time.Time, from, to int) bool {
	shortest := shortWatch - c.mirror.slack()
	isNext := func(r *world.Request) bool { return !r.Check }
	for i := from; i < to; i++ {
		r := c.requests[i]
		next := slices.IndexFunc(c.requests[i+1:to], isNext)
		if r.List || r.Answered.IsZero() || r.Duration() < shortest || next < 0 {
			continue
		}
		after := c.requests[i+1+next : to]
		resumed := after[0].At
		if resumed.Sub(r.At) < shortWatch {
			continue
		}
		if c.exceeds(start, c.requests[from:i+1]) == "" && c.exceeds(resumed, after) == "" {
			return true
		}
	}
	return false
}

// runFrom says when a run of failures began, and with which request, if one can have begun
// because of a request: because it failed, or the watch after a list, or because a watch
// that had lived broke.
func (c *rateCheck) runFrom(i int) (began time.Time, first int, ok bool) {
	r := c.requests[i]
	if r.Check && !r.Failed {
		return time.Time{}, 0, false
	}
	if wasLongLived(r) {
		end := r.At.Add(r.Duration())
		return end, i + 1, r.Failed || c.mirror.reportedAt(end)
	}
	failed := r
	if r.List && !r.Failed && i+1 < len(c.requests) {
		failed = c.requests[i+1]
	}
	return r.At, i, (failed.Failed || !failed.List) && !wasLongLived(failed)
}

// exceeds describes how requests exceed the limits of a series of failures that began at start;
// empty if they do not.
func (c *rateCheck) exceeds(start time.Time, requests []*world.Request) string {
	first := firstMinute
	later := laterMinute
	if slices.ContainsFunc(requests, workedForShort) {
		later = laterMinuteMoving
	}
	tooMany := func(n int, since time.Time, most int) string {
		return fmt.Sprintf("%d requests in the minute after %v, at most %d may be",
			n, since.Sub(c.mirror.World.Start), most)
	}
	all := len(requests)
	requests = slices.DeleteFunc(slices.Clone(requests), func(r *world.Request) bool { return r.Relist })
	relists := all - len(requests)
	first += relists // each is followed by a watch
	later += relists
	within := 0
	for i, r := range requests {
		if r.At.Before(start) {
			continue // a check of the version beside the watch before
		}
		if r.At.Sub(start) < time.Minute {
			within++
			continue
		}
		in := 0
		for j := i; j < len(requests) && requests[j].At.Sub(r.At) < time.Minute; j++ {
			in++
		}
		if in > later {
			return tooMany(in, r.At, later)
		}
	}
	if within > first {
		return tooMany(within, start, first)
	}
	return ""
}
