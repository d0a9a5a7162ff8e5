package simulation

import (
	"fmt"
	"slices"
	"time"
)

// The limits of G13: requests in the first minute of a series of failures, and in any later minute.
const (
	shortWatch   = 10 * time.Second
	workingWatch = 6 * time.Second

	firstMinute       = 20
	laterMinute       = 3
	laterMinuteMoving = 11
)

// checkRates checks each reflector of all mirrors.
func (w *world) checkRates() {
	for _, m := range w.mirrors {
		for _, t := range m.taps {
			t.checkRates()
		}
	}
}

// checkRates checks each stretch of requests that lasted less than 10 s, watches included. A longer
// request begins another stretch.
func (t *tap) checkRates() {
	t.mu.Lock()
	defer t.mu.Unlock()
	from, began := 0, time.Time{}
	for i, r := range t.requests {
		if i == 0 {
			began = r.at
		}
		if t.isPollingLocked(i) && r.at.Sub(t.lastFailureLocked(i)) >= healthyTime {
			// Lists that work, in place of watches, end a series as well.
			t.checkStretch(began, from, i)
			from, began = i, r.at
		}
		// A list is one with the watch after it, however long it takes, unless a page failed.
		broken := r.failed || i+1 < len(t.requests) && t.requests[i+1].firstPage == r
		if r.duration() >= shortWatch && !r.check && (!r.list || broken) {
			t.checkStretch(began, from, i+1)
			// What follows may be because of how this one ended.
			from, began = i+1, r.at.Add(r.duration())
		}
	}
	t.checkStretch(began, from, len(t.requests))
	t.checkDeadlines()
}

// healthyTime is the time without a failure that ends a series.
const healthyTime = 2 * time.Minute

// isPollingLocked says whether request i takes part in polls: the last watch before it was not
// allowed, and request i is not the first list after that. It may be another try of a watch.
func (t *tap) isPollingLocked(i int) bool {
	polls := t.requests[:i]
	if t.requests[i].list {
		polls = t.requests[:i+1]
	}
	lists := 0
	for _, r := range slices.Backward(polls) {
		if !r.list {
			return r.isNotAllowed && lists > 1
		}
		lists++
	}
	return false
}

// lastFailureLocked returns when a request last failed before request i was made. One that is
// running, such as a check of the version that hangs, has not failed yet.
func (t *tap) lastFailureLocked(i int) time.Time {
	now := t.requests[i].at
	last := time.Time{}
	for _, r := range t.requests[:i] {
		end := r.at.Add(r.duration())
		if r.failed && !r.isNotAllowed && !end.After(now) && end.After(last) {
			last = end
		}
	}
	return last
}

// checkDeadlines checks that no watch stayed open much longer than 30 s past its timeout (B19). Its
// events may be received late.
func (t *tap) checkDeadlines() {
	const batches, batch = 8, 32 // before the deadline is looked at
	grace := 30*time.Second + 2*time.Minute + batches*batch*time.Duration(t.mirror.world.slowest.Load())
	for _, r := range t.requests {
		opened := !r.list && (r.open || !r.ended.IsZero())
		if opened && r.duration()-r.answered.Sub(r.at) > r.timeout+grace {
			t.mirror.world.fail("B19: %s left a watch open for %v that had asked for %v", t.mirror.name, r.duration(), r.timeout)
		}
	}
}

// abandonedVersionChecks says whether checks of the source's version have failed three times. They are not made again then (B23).
func (t *tap) abandonedVersionChecks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	failed := 0
	for _, r := range t.requests {
		if r.check && r.failed {
			failed++
		}
	}
	return failed >= 3
}

// duration is the time until the response was complete.
func (r *request) duration() time.Duration {
	switch {
	case !r.ended.IsZero():
		return r.ended.Sub(r.at)
	case r.answered.IsZero() || (!r.list && !r.failed):
		return time.Since(r.at)
	}
	return r.answered.Sub(r.at)
}

// wasLongLived says whether it was a watch that was of use for so long that its end is no short
// one's. One whose first state never ended, or was of wrong types, was of none.
func (r *request) wasLongLived() bool {
	if r.list || r.endless || r.answered.IsZero() || r.failed && r.ended.IsZero() {
		return false
	}
	if r.wrong && r.items > 0 {
		return false
	}
	useful := r.duration()
	if r.events == 0 {
		useful -= r.answered.Sub(r.at)
	}
	return useful >= shortWatch
}

// workedForShort says whether it was a short watch of some use: it advanced the version, lived for some
// seconds, or was closed without an error.
func (r *request) workedForShort() bool {
	if r.list || r.answered.IsZero() || r.duration() >= shortWatch {
		return false
	}
	closed := !r.failed && !r.ended.IsZero() && (r.events > 0 || r.ended.Sub(r.answered) >= time.Second)
	return r.moved || closed || r.duration() >= workingWatch
}

// checkStretch checks the requests from one up to another as a stretch of failures that
// began at start. Its first minute may have begun before: what took 10 s may have failed,
// and a watch that lived for so long ends no run of failures, which takes two minutes.
func (t *tap) checkStretch(start time.Time, from, to int) {
	found := t.exceeds(start, t.requests[from:to])
	if next := slices.IndexFunc(t.requests[from:to], func(r *request) bool { return !r.check }); found != "" && next >= 0 &&
		from > 0 && !t.requests[from-1].list && !t.requests[from-1].failed &&
		t.exceeds(t.requests[from+next].at, t.requests[from:to]) == "" {
		return // a watch whose end was only acted on once slow handlers, or a deaf check, had let it
	}
	for i := from; found != "" && i < to && t.requests[i].at.Before(start); i++ {
		r := t.requests[i]
		if r.check && (r.failed || start.Sub(r.at) < shortWatch) && start.Sub(r.at) < time.Minute &&
			t.exceeds(r.at, t.requests[i:to]) == "" {
			return // the failures began with a check beside the watch before, or so soon after it that it is counted with them
		}
	}
	for i := from - 1; found != "" && i >= 0; i-- {
		began, first, ok := t.runFrom(i)
		if ok && start.Sub(began) < time.Minute && t.exceeds(began, t.requests[first:to]) == "" {
			return
		}
	}
	if found != "" {
		t.mirror.world.fail("G13: %s made %s", t.mirror.name, found)
	}
}

// runFrom says when a run of failures began, and with which request, if one can have begun
// because of a request: because it failed, or the watch after a list, or because a watch
// that had lived broke.
func (t *tap) runFrom(i int) (began time.Time, first int, ok bool) {
	r := t.requests[i]
	if r.check && !r.failed {
		return time.Time{}, 0, false
	}
	if r.wasLongLived() {
		end := r.at.Add(r.duration())
		return end, i + 1, r.failed || t.mirror.reportedAt(end)
	}
	failed := r
	if r.list && !r.failed && i+1 < len(t.requests) {
		failed = t.requests[i+1]
	}
	return r.at, i, (failed.failed || !failed.list) && !failed.wasLongLived()
}

// exceeds describes how requests exceed the limits of a series of failures that began at start; empty
// if they do not.
func (t *tap) exceeds(start time.Time, requests []*request) string {
	first := firstMinute
	later := laterMinute
	if slices.ContainsFunc(requests, (*request).workedForShort) {
		later = laterMinuteMoving
	}
	tooMany := func(n int, since time.Time, most int) string {
		return fmt.Sprintf("%d requests in the minute after %v, at most %d may be", n, since.Sub(t.mirror.world.start), most)
	}
	all := len(requests)
	requests = slices.DeleteFunc(slices.Clone(requests), func(r *request) bool { return r.relist })
	relists := all - len(requests)
	first += relists // each is followed by a watch
	later += relists
	within := 0
	for i, r := range requests {
		if r.at.Before(start) {
			continue // a check of the version beside the watch before
		}
		if r.at.Sub(start) < time.Minute {
			within++
			continue
		}
		in := 0
		for j := i; j < len(requests) && requests[j].at.Sub(r.at) < time.Minute; j++ {
			in++
		}
		if in > later {
			return tooMany(in, r.at, later)
		}
	}
	if within > first {
		return tooMany(within, start, first)
	}
	return ""
}
