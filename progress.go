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
	// versioned is true once the source has sent a list with a version.
	versioned bool
	// refetch is about undecoded items of lists.
	refetch refetch
	// unpaged means that the next list is not paged.
	unpaged bool
	// paged is true once a list at "0" came in pages. Such a server does not answer from a cache, so
	// pages cost it nothing.
	paged bool
	// watchFailures counts failed watches in a row of which none has worked.
	watchFailures int
	// streaming is about failed streaming lists.
	streaming streaming
	// lastReceived is when the source last sent an event or a list, or when its silence was last
	// noticed. It outlasts a watch, since a restored source may be silent through several.
	lastReceived time.Time
	checks       checks
	emptyWatches emptyWatches
	// polledUntil is when a source that cannot be watched is next asked for a watch.
	polledUntil time.Time
}

// startsWithState reports whether a watch from the version begins with the present objects. It does
// not send what was deleted before, so a list must precede it.
func startsWithState(version string) bool { return version == "" || version == "0" }

// refetch schedules another list for items that could not be decoded.
type refetch struct {
	// undecoded are the versions of the last list's undecoded items.
	undecoded map[string]string
	// last is when a list was last made because of such items.
	last time.Time
}

// streaming is the state of attempts to stream lists.
type streaming struct {
	// after is when streaming may be tried again.
	after    time.Time
	failures int
}

const (
	// emptyWatchesBeforeList is how many empty watches in a row cause a list.
	emptyWatchesBeforeList = 3
	// firstFruitlessPause and fruitlessPause follow the first and any later list that found nothing.
	firstFruitlessPause = 10 * time.Minute
	fruitlessPause      = time.Hour
)

// emptyWatches counts watches in a row from one version that closed cleanly, before half of their
// timeout, without an event. A server that has forgotten the version may answer so in place of 410.
// A proxy that ends idle watches looks the same, so lists that find nothing become rare.
type emptyWatches struct {
	version string
	count   int
	// listWanted is true from the decision to list to the end of that list.
	listWanted bool
	// fruitless is the number of such lists in a row that found nothing, listed the time of the last.
	fruitless int
	listed    time.Time
	// items is the number of objects of the last list, or -1 if there were events since.
	items int
}

// record counts an empty watch, and reports whether a list is due.
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

// recordList records a list of so many objects. hasNewer means that one of them is newer than the
// version of the watches.
func (e *emptyWatches) recordList(now time.Time, items int, hasNewer bool) {
	found := hasNewer || e.items >= 0 && items != e.items
	if e.listWanted && found {
		e.fruitless = 0
	} else if e.listWanted {
		e.fruitless++
	}
	if e.listWanted {
		e.listed = now
	}
	e.listWanted = false
	e.items = items
	e.reset()
}
