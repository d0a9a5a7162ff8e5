// The state of a reflector that survives a run. Which version does the next list or watch begin
// with, and what did the last ones show about the source?

package cache

import (
	"time"

	"github.com/watchmirror/cache/internal/backoff"
)

// progress is the state that survives a run.
type progress struct {
	backoff *backoff.Backoff
	// version is the last version that the store accepted, or that of an aborted first list, whose
	// parts are visible. An older state is a regression. It is empty after one.
	version string
	// versionInvalid means that the version has expired, is too large for the source, or has
	// regressed. The next list is at "" and may be older.
	versionInvalid bool
	// expired is the last version from which a watch or list was refused as expired.
	expired string
	// versioned is true once the source has sent a list with a version.
	versioned bool
	// duplicates has the states that the last list had under a key beside a kept one. They are
	// reported.
	duplicates map[duplicateState]bool
	// unpaged means that the next list is not paged.
	unpaged bool
	// paged is true once a list at "0" came in pages. Such a server does not answer from a cache,
	// so pages cost it nothing.
	paged         bool
	failedWatches failedWatches
	// lastReceived is when the source last sent an event or a list, or when its silence was last
	// noticed. It outlasts a watch, since a restored source may be silent through several.
	lastReceived time.Time
	// polledUntil is when a source that cannot be watched is next asked for a watch.
	polledUntil  time.Time
	streaming    streaming
	refusedLists refusedLists
	checks       checks
	refetch      refetch
	emptyWatches emptyWatches
}

// failedWatches counts failed watches in a row of which none has worked.
type failedWatches struct {
	count int
	// since is when the first of them was requested.
	since time.Time
	// refused means that the source can be listed and not watched: a list follows each refused
	// request. It is false again once the source has accepted a watch that is no streaming list.
	refused bool
}

// record counts a failed watch, and reports whether more than another watch must follow.
func (w *failedWatches) record(failed failedAttempt, now time.Time) (isLasting bool) {
	if w.count == 0 {
		w.since = failed.began
	}
	w.count++
	isSlow := failed.request && now.Sub(w.since) >= refusingBeforeList
	return isSlow || w.count >= watchesBeforeList
}

// refusedLists counts lists in a row that the source has refused with an error that may be about
// the version: API servers answer a version that they cannot parse, or that their storage has not
// reached, with an internal error. A list at "" needs no version. It costs more, and what is wrong
// may be the source, so the list after it is at the version again.
type refusedLists struct {
	count int
	// newestIsDue means that the next list is at "". It must not be older than the store.
	newestIsDue bool
}

// record records a refused list. The error of a bad request is certainly about the request.
func (r *refusedLists) record(isBadRequest bool) {
	if r.newestIsDue {
		*r = refusedLists{}
		return
	}
	r.count++
	r.newestIsDue = isBadRequest || r.count >= refusalsBeforeNewest
}

// startsWithState reports whether a watch from the version begins with the present objects. It does
// not send what was deleted before, so a list must precede it.
func startsWithState(version string) bool { return version == "" || version == "0" }

// An undecoded item of a list may have been damaged in transit, and a watch sends it only when it
// changes. So it is listed once more for each of its versions, refetchAfter later and at most once
// in refetchInterval. The watch continues until then.
const (
	refetchAfter    = 2 * time.Second
	refetchInterval = time.Minute
)

// refetch schedules another list for items that could not be decoded.
type refetch struct {
	// undecoded are the versions of the last list's undecoded items.
	undecoded map[string]string
	// due is when these are listed again, or zero.
	due time.Time
	// last is when a list was last made because of such items.
	last time.Time
}

// recordList records the versions of the undecoded items of a list, by key. Another list is due if
// the list before it did not have one of them at the same version.
func (r *refetch) recordList(undecoded map[string]string, now time.Time) {
	before := r.undecoded
	r.undecoded = undecoded
	r.due = time.Time{}
	for key, version := range undecoded {
		known, again := before[key]
		if !again || known != version {
			r.due = latest(now.Add(refetchAfter), r.last.Add(refetchInterval))
			return
		}
	}
}

const (
	// streamAttempts is the number of consecutive failures after which the reflector lists.
	streamAttempts = 2
	// streamProbe is the time after that in which the reflector only lists.
	streamProbe = 10 * time.Minute
)

// streaming is the state of attempts to stream lists.
type streaming struct {
	// failures counts failed streams in a row.
	failures int
	// after is when streaming may be tried again, or zero if it has not failed streamAttempts
	// times.
	after time.Time
}

// recordFailure records a failed stream. A final failure is enough for a list.
func (s *streaming) recordFailure(now time.Time, isFinal bool) {
	s.failures++
	if isFinal || s.failures >= streamAttempts {
		s.failures = 0
		s.after = now.Add(streamProbe)
	}
}

func (s *streaming) recordSuccess() { s.failures = 0 }

// hasFailed reports whether the reflector lists, since streaming has failed.
func (s *streaming) hasFailed() bool { return !s.after.IsZero() }

// isDue reports whether streaming, which has failed, may be tried again.
func (s *streaming) isDue(now time.Time) bool { return s.hasFailed() && !now.Before(s.after) }

const (
	// emptyWatchesBeforeList is how many empty watches in a row cause a list.
	emptyWatchesBeforeList = 3
	// firstFruitlessPause and fruitlessPause follow the first and any later list that found
	// nothing.
	firstFruitlessPause = 10 * time.Minute
	fruitlessPause      = time.Hour
)

// emptyWatches counts watches in a row from one version that closed cleanly, before half of their
// timeout, without an event of a known type. A server that has forgotten the version may answer so
// in place of 410. A proxy that ends idle watches looks the same, so lists that find nothing become
// rare.
type emptyWatches struct {
	version string
	count   int
	// listWanted is true from the decision to list to the end of that list.
	listWanted bool
	// fruitless is the number of such lists in a row that found nothing.
	fruitless int
	// listed is the time of the last such list.
	listed time.Time
	// items is the number of objects of the last list, or -1 if there were events since.
	items int
}

// record counts an empty watch, and decides whether a list is due.
func (e *emptyWatches) record(version string, now time.Time) {
	if e.version != version {
		e.reset()
	}
	e.version = version
	e.count++
	e.listWanted = e.count >= emptyWatchesBeforeList && !now.Before(e.nextList())
}

// reset begins to count again: a watch has worked.
func (e *emptyWatches) reset() { e.count = 0 }

// nextList is the earliest time of the next list.
func (e *emptyWatches) nextList() time.Time {
	switch e.fruitless {
	case 0:
		return time.Time{}
	case 1:
		return e.listed.Add(firstFruitlessPause)
	default:
		return e.listed.Add(fruitlessPause)
	}
}

// recordEvents records that the number of objects may have changed since the last list.
func (e *emptyWatches) recordEvents() { e.items = -1 }

// hasOtherSize reports whether a list of so many objects shows that some were added or removed.
func (e *emptyWatches) hasOtherSize(items int) bool { return e.items >= 0 && items != e.items }

// recordList records a list of so many objects, and whether it has found changes.
func (e *emptyWatches) recordList(now time.Time, items int, found bool) {
	if e.listWanted {
		e.listed = now
		e.fruitless++
		if found {
			e.fruitless = 0
		}
	}
	e.listWanted = false
	e.items = items
	e.reset()
}
