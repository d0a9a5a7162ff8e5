package cache

import (
	"errors"
	"time"

	"k8s.io/klog/v2"
)

const (
	// shortWatch is how long a watch must have lived for its end to be no
	// failure.
	shortWatch = 10 * time.Second
	// veryShortWatch and no event at all is an error, as in client-go.
	veryShortWatch = time.Second
	// watchesBeforeList bounds the watches that fail in a row without moving
	// the version before the state is got anew. The number is a compromise: a
	// server that cannot continue this watch is left after about half a minute
	// of backoff, one that restarts is not asked for everything.
	watchesBeforeList = 10
)

// watchState opens a watch at the last version, or goes on with the one that the
// streaming list left, and applies what it sends until it ends.
func (m *run) watchState() step {
	m.setPhase(PhaseWatching)
	w := m.stream
	m.stream = nil
	if w == nil {
		options, timeout := m.watchOptions(m.progress.version)
		asked := m.clock.Now()
		var err error
		if w, err = m.open(options, timeout, timeout+watchGrace); err != nil {
			return m.watchFailed(err, asked, true)
		}
		if w == nil {
			return step{}
		}
		w.synthetic = options.ResourceVersion == "" || options.ResourceVersion == "0"
	}
	end := m.watchUntilEnd(w)
	switch {
	case end.stopped:
		return step{}
	case errors.Is(end.err, errRefetch):
		if m.round {
			return step{}
		}
		return step{state: stateWhole}
	case end.err != nil:
		return m.watchFailed(end.err, end.began, false)
	}
	return m.watchClosed(w, end.lived)
}

// watchEnd is how a watch ended: because the context did, with an error, or by
// closing.
type watchEnd struct {
	stopped bool
	err     error
	lived   time.Duration
	// began is when the request was made that a failure counts from: a watch
	// that has lived does not count as a failed request.
	began time.Time
}

// watchUntilEnd applies what a watch sends. The watch is closed when it returns:
// no connection stays open through a pause.
func (m *run) watchUntilEnd(w *openWatch) (end watchEnd) {
	panicking := true
	defer func() {
		if older := m.cutCheck(panicking); end.err == nil && !end.stopped {
			end.err = older
		}
	}()
	defer func() { m.closeAfter(w, panicking) }()
	end.stopped, end.err = m.applyEvents(w)
	panicking = false
	now := m.clock.Now()
	end.lived, end.began = w.lived(now), w.asked
	if end.lived >= shortWatch {
		end.began = now
		m.progress.rested = false
	}
	return end
}

func (m *run) applyEvents(w *openWatch) (stopped bool, err error) {
	for err = m.serveTimer(w); err == nil; {
		waits := waiting{events: w.results, timer: w.timer.C(), resync: true}
		if m.check != nil && !m.check.cut {
			waits.done = m.check.done
		}
		switch woke := m.next(waits); woke.end {
		case endEvent:
			err = m.applyBatches(w, woke.event)
		case endClosed:
			m.meters.watchClosed(w)
			return false, nil
		case endTimer:
			err = m.serveTimer(w)
		case endDone:
			if err = m.endCheck(); err == nil {
				err = m.serveTimer(w)
			}
		case endResync:
			err = woke.err
		default:
			return true, nil
		}
	}
	return false, err
}

// watchClosed answers the end of a watch without an error. Every watch ends so
// at its timeout; one that ended early is followed by a pause.
func (m *run) watchClosed(w *openWatch, lived time.Duration) step {
	klog.FromContext(m.ctx).V(4).Info("Watch closed", "reflector", m.name, "type", m.typeDescription, "events", w.events, "lived", lived)
	switch {
	case lived < veryShortWatch && w.events == 0:
		return m.watchFailed(&VeryShortWatchError{Name: m.name}, w.asked, false)
	case lived < shortWatch:
		return m.pause(stateWatch, failure{began: w.asked, progress: w.moved})
	}
	m.succeeded(PhaseWatching)
	m.progress.watchFailures = 0
	return step{state: stateWatch}
}

// watchFailed reports what went wrong with a watch and says what comes next.
// refused is true if it was the request.
func (m *run) watchFailed(err error, began time.Time, refused bool) step {
	if m.ctx.Err() != nil {
		return step{}
	}
	m.progress.retry.After(err)
	cause := CauseOf(err)
	if cause != CauseShortWatch {
		m.progress.checks.wanted = true
	}
	action := answerToWatch(cause, refused)
	if m.round && !m.sameRound(err, action) {
		if refused {
			m.count(err)
			m.result = err
		} else {
			m.failed(m.ctx, err)
		}
		return step{}
	}
	m.failed(m.ctx, err)
	f := failure{began: began, retryAfter: retryAfter(err)}
	switch action {
	case watchAgainAtOnce:
		m.progress.rested = false
		return step{state: stateWatch}
	case watchAgain:
		return m.pause(stateWatch, f)
	case watchWithDeadline:
		if m.progress.retry.ShouldRetry() {
			return m.pause(stateWatch, f)
		}
	case watchThenList:
		m.progress.watchFailures++
		if m.progress.watchFailures < watchesBeforeList {
			return m.pause(stateWatch, f)
		}
	case listNewest:
		m.progress.anyVersion = true
	case listNewestAfterNews:
		m.progress.unknown, f.unknown = true, true
		f.retryAfter = pauseForNews(CauseVersionTooLarge, err)
	case listAfterNews:
		f.unknown = true
	}
	m.progress.watchFailures = 0
	return m.pause(stateWhole, f)
}

// sameRound says whether client-go's ListAndWatch would watch again after err
// rather than return.
func (m *run) sameRound(err error, action answer) bool {
	var short *VeryShortWatchError
	switch action {
	case watchAgainAtOnce:
		return true
	case watchAgain:
		return !errors.As(err, &short)
	case watchWithDeadline:
		return m.progress.retry.ShouldRetry()
	}
	return false
}
