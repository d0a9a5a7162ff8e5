package world

import (
	"slices"
	"time"

	"github.com/watchmirror/cache"
)

// History is what a tap has recorded of its reflector.
type History struct {
	Requests []*Request
	// Pages are the further pages of lists.
	Pages  []*Request
	Faults []Fault
	Waits  []Wait
}

// Request is one request of a reflector: a call of List, all pages that were answered of
// one list, or a call of Watch.
type Request struct {
	At, Answered time.Time
	// Abandoned is when the context of its call ended before the source answered.
	Abandoned time.Time
	List      bool
	Ended     time.Time // of a watch that was opened
	Events    int
	// version is the requested one. moved: a watch sent an event of another version.
	version string
	Moved   bool
	// Timeout is the requested timeout of a watch.
	Timeout time.Duration
	// Failed: the response was an error, or its stream had one.
	Failed bool
	// isStream: a streaming list.
	isStream bool
	// Endless: a streaming list whose final bookmark has not been sent.
	Endless bool
	// Open: a watch that was opened, or a list that has more pages.
	Open bool
	// FirstPage is the list that a further page belongs to. A page that is answered is part of
	// that, one that fails is a request of its own.
	FirstPage *Request
	// Wrong: the objects of a list, streamed or not, are all of another type; items counts
	// those of a wrong one.
	Wrong bool
	Items int
	// Relist: a list or stream at "" while callers of Fresh or Verify wait, which may have caused
	// it.
	Relist bool
	// Check: a list beside an open watch that checks the source's version.
	Check bool
	// behind: a list whose version is behind its items, by at most so many versions (B31).
	behind uint64
	// versionless: a list without a version (B32), and without items if isEmptied.
	versionless bool
	isEmptied   bool
	// RetryAfter is the Retry-After of its failure.
	RetryAfter time.Duration
	// IsNotAllowed: a watch of a source that can only be listed.
	IsNotAllowed bool
	// stopped: a watch that the reflector has ended.
	stopped bool
}

// Fault is a failure that the reflector must report.
type Fault struct {
	Number int
	At     time.Time
	Err    error
	// Cause is the cause of a list that was answered and has failed all the same.
	Cause cache.Cause
	// Excused: its context had ended.
	Excused bool
}

// Wait is the pause after a failure with a Retry-After.
type Wait struct {
	Since    time.Time
	Duration time.Duration
	// Until is when the next request was made; zero if none was.
	Until time.Time
	// ofCheck is true if the request that failed was a check.
	ofCheck bool
}

// wholeList is the list that a request is a page of, or itself.
func (r *Request) wholeList() *Request {
	if r.FirstPage != nil {
		return r.FirstPage
	}
	return r
}

// Duration is the time until the response was complete.
func (r *Request) Duration() time.Duration {
	switch {
	case !r.Ended.IsZero():
		return r.Ended.Sub(r.At)
	case r.Answered.IsZero() || (!r.List && !r.Failed):
		return time.Since(r.At)
	}
	return r.Answered.Sub(r.At)
}

// history returns a copy of the record.
func (t *tap) history() History {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := History{Waits: slices.Clone(t.waits)}
	copies := map[*Request]*Request{}
	copyOf := func(r *Request) *Request {
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
		h.Requests = append(h.Requests, copyOf(r))
	}
	for _, r := range t.pages {
		h.Pages = append(h.Pages, copyOf(r))
	}
	for _, c := range copies {
		c.FirstPage = copyOf(c.FirstPage)
	}
	for _, f := range t.faults {
		h.Faults = append(h.Faults, *f)
	}
	return h
}
