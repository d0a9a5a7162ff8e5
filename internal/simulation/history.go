package simulation

import (
	"slices"
	"time"

	"github.com/watchmirror/cache"
)

// history is what a tap has recorded of its reflector.
type history struct {
	requests []*request
	// pages are the further pages of lists.
	pages  []*request
	faults []fault
	waits  []wait
}

// request is one request of a reflector: a call of List, all pages that were answered of
// one list, or a call of Watch.
type request struct {
	at, answered time.Time
	// abandoned is when the context of its call ended before the source answered.
	abandoned time.Time
	list      bool
	ended     time.Time // of a watch that was opened
	events    int
	// version is the requested one. moved: a watch sent an event of another version.
	version string
	moved   bool
	// timeout is the requested timeout of a watch.
	timeout time.Duration
	// failed: the response was an error, or its stream had one.
	failed bool
	// isStream: a streaming list.
	isStream bool
	// endless: a streaming list whose final bookmark has not been sent.
	endless bool
	// open: a watch that was opened, or a list that has more pages.
	open bool
	// firstPage is the list that a further page belongs to. A page that is answered is part of
	// that, one that fails is a request of its own.
	firstPage *request
	// wrong: the objects of a list, streamed or not, are all of another type; items counts
	// those of a wrong one.
	wrong bool
	items int
	// relist: a list or stream at "" while callers of Fresh or Verify wait, which may have caused it.
	relist bool
	// check: a list beside an open watch that checks the source's version.
	check bool
	// behind: a list whose version is behind its items, by at most so many versions (B31).
	behind uint64
	// versionless: a list without a version (B32), and without items if isEmptied.
	versionless bool
	isEmptied   bool
	// retryAfter is the Retry-After of its failure.
	retryAfter time.Duration
	// isNotAllowed: a watch of a source that can only be listed.
	isNotAllowed bool
	// stopped: a watch that the reflector has ended.
	stopped bool
}

// fault is a failure that the reflector must report.
type fault struct {
	number int
	at     time.Time
	err    error
	// cause is the cause of a list that was answered and has failed all the same.
	cause cache.Cause
	// excused: its context had ended.
	excused bool
}

// wait is the pause after a failure with a Retry-After.
type wait struct {
	since    time.Time
	duration time.Duration
	// until is when the next request was made; zero if none was.
	until time.Time
}

// wholeList is the list that a request is a page of, or itself.
func (r *request) wholeList() *request {
	if r.firstPage != nil {
		return r.firstPage
	}
	return r
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

// history returns a copy of the record.
func (t *tap) history() history {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := history{waits: slices.Clone(t.waits)}
	copies := map[*request]*request{}
	copyOf := func(r *request) *request {
		if r == nil {
			return nil
		}
		if copies[r] == nil {
			c := *r
			copies[r] = &c
		}
		return copies[r]
	}
	for _, r := range t.requests {
		h.requests = append(h.requests, copyOf(r))
	}
	for _, r := range t.pages {
		h.pages = append(h.pages, copyOf(r))
	}
	for _, c := range copies {
		c.firstPage = copyOf(c.firstPage)
	}
	for _, f := range t.faults {
		h.faults = append(h.faults, *f)
	}
	return h
}
