// The times at which something is due in an open watch: its end, another list of undecoded items, a
// check of the source's version. When is which due?

package cache

import (
	"slices"
	"time"
)

// handleTimer does what is due, and sets the watch's timer to the time at which something is due
// next. An error ends the watch.
func (w *openWatch) handleTimer() error {
	now := w.run.clock.Now()
	if isDue(w.overdueTime(), now) {
		return errWatchOverdue
	}
	if isDue(w.successTime(), now) {
		w.recordSuccess()
	}
	if isDue(w.refetchTime(now), now) {
		w.progress.refetch.due = time.Time{}
		if w.run.hasUndecoded() { // otherwise later states have arrived
			w.progress.refetch.last = now
			return errRefetch
		}
	}
	if isDue(w.silenceTime(), now) {
		w.progress.lastReceived = now // the next silence begins
		w.progress.checks.want()
	}
	if isDue(w.checkTime(now), now) {
		w.run.beginCheck(w, now)
	}
	next := earliest(
		w.overdueTime(), w.successTime(), w.refetchTime(now), w.silenceTime(), w.checkTime(now))
	w.timer.Reset(next.Sub(now))
	return nil
}

// The following methods return when something is due, or the zero time if it is not wanted.

// overdueTime is when the watch counts as half open. A stream may last as long as it keeps sending.
func (w *openWatch) overdueTime() time.Time {
	if w.listing != nil {
		return latest(w.answeredAt, w.progress.lastReceived).Add(streamQuiet)
	}
	return w.expires
}

// successTime is when the watch has been open for so long that it ends a series of reported
// failures.
func (w *openWatch) successTime() time.Time {
	if w.successful || w.listing != nil {
		return time.Time{}
	}
	return w.answeredAt.Add(successfulAfter)
}

// refetchTime is when undecoded items are listed again.
func (w *openWatch) refetchTime(now time.Time) time.Time {
	due := w.progress.refetch.due
	if due.IsZero() || w.listing != nil {
		return time.Time{}
	}
	const listAndWatch = 2
	return latest(due, now.Add(w.progress.backoff.Delay(now, listAndWatch)))
}

// silenceTime is when a source that sends bookmarks has been silent for so long that its version is
// checked. An idle informer of another source need not wake up for it.
func (w *openWatch) silenceTime() time.Time {
	if !w.reflector.bookmarks.Load() || !w.mayCheck() {
		return time.Time{}
	}
	return w.progress.lastReceived.Add(maxSilence)
}

// checkTime is when a wanted check begins.
func (w *openWatch) checkTime(now time.Time) time.Time {
	checks := &w.progress.checks
	if !checks.wanted || !w.mayCheck() {
		return time.Time{}
	}
	openLongEnough := w.answeredAt.Add(min(checkDelay, w.timeout/2))
	withinLimits := now.Add(w.progress.backoff.Delay(now, 1))
	return latest(checks.earliest(), openLongEnough, withinLimits)
}

// mayCheck reports whether a check may begin beside the watch.
func (w *openWatch) mayCheck() bool {
	return w.listing == nil && w.run.check == nil && !w.reflector.wholeLists
}

func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// earliest returns the earliest of the times that are not zero.
func earliest(times ...time.Time) time.Time {
	times = slices.DeleteFunc(times, time.Time.IsZero)
	return slices.MinFunc(times, time.Time.Compare)
}
