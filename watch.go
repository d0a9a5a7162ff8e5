package cache

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// shortWatch is how long a watch must have lived for its end to be no
	// failure.
	shortWatch = 10 * time.Second
	// veryShortWatch and no event at all is an error, as in client-go.
	veryShortWatch = time.Second
	// watchGrace is how long after the timeout that a watch asked for it is
	// taken for half open: time for a server under load to end it, and for the
	// end to arrive.
	watchGrace = 30 * time.Second
	// watchesBeforeList bounds the watches that fail in a row without moving
	// the version before the state is got anew. The number is a compromise: a
	// server that cannot continue this watch is left after about half a minute
	// of backoff, one that restarts is not asked for everything.
	watchesBeforeList = 5
)

// openWatch is a watch and what is known of it. It is stopped once.
type openWatch struct {
	watch.Interface
	cancel   context.CancelFunc
	opened   time.Time
	deadline clock.Timer
	// synthetic is true while the events may be those that a server makes up
	// for a watch from "" or "0", which come in no version order. They end at
	// the first that is not Added.
	synthetic bool
	events    int
	// moved is true once the watch has moved the version.
	moved bool
}

// watchOptions are those of any watch. Bookmarks are asked for, and nothing
// depends on their coming.
func (m *run) watchOptions(version string) (metav1.ListOptions, time.Duration) {
	spread := m.maxWatchTimeout - m.minWatchTimeout
	timeout := m.minWatchTimeout + time.Duration(m.random()*float64(spread))
	seconds := int64(timeout / time.Second)
	return metav1.ListOptions{
		ResourceVersion:     version,
		TimeoutSeconds:      &seconds,
		AllowWatchBookmarks: true,
	}, timeout
}

// open asks the source for a watch that is to last for timeout.
func (m *run) open(options metav1.ListOptions, timeout time.Duration) (*openWatch, error) {
	return m.openWithin(options, timeout, timeout+watchGrace)
}

// openWithin is open with a bound of its own for the request. The deadline of the
// watch counts from before the request: a connection can be half open before the
// answer's first byte. The watch is nil, without an error, if the context ended.
func (m *run) openWithin(options metav1.ListOptions, timeout, patience time.Duration) (*openWatch, error) {
	ctx, cancel := context.WithCancel(m.ctx)
	w := &openWatch{
		cancel:   cancel,
		opened:   m.clock.Now(),
		deadline: m.clock.NewTimer(timeout + watchGrace),
	}
	m.progress.backoff.note(request{at: w.opened})
	limit := m.clock.NewTimer(patience)
	defer limit.Stop()
	answer := askWithin(m, ctx, cancel, "Watch", limit.C(), func(ctx context.Context) (watch.Interface, error) {
		return m.source.WatchWithContext(ctx, options)
	})
	w.Interface = answer.value
	switch {
	case answer.err == nil && !answer.ended && !answer.late && isNilPointer(answer.value):
		answer.err = ErrNilWatch
	case answer.late:
		answer.err = ErrWatchOverdue
	case answer.err == nil && !answer.ended:
		return w, nil
	}
	m.close(w)
	return nil, answer.err
}

// close ends a watch and waits for the source to have heard it.
func (m *run) close(w *openWatch) {
	w.deadline.Stop()
	w.cancel()
	if isNilPointer(w.Interface) {
		return
	}
	done := make(chan struct{})
	var panicked any
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		w.Stop()
	}()
	m.awaitSlow("Stop", done)
	if panicked != nil {
		panic(panicked)
	}
}

// dropStream ends the watch that a streaming list left for the watch state, if
// that was never reached.
func (m *run) dropStream() {
	if m.stream != nil {
		m.close(m.stream)
		m.stream = nil
	}
}

// watchState opens a watch at the last version, or goes on with the one that the
// streaming list left, and applies what it sends until it ends.
func (m *run) watchState() state {
	m.setPhase(PhaseWatching)
	w := m.stream
	m.stream = nil
	if w == nil {
		options, timeout := m.watchOptions(m.progress.version)
		began := m.clock.Now()
		var err error
		if w, err = m.open(options, timeout); err != nil {
			return m.watchFailed(err, began, true)
		}
		if w == nil {
			return nil
		}
		w.synthetic = options.ResourceVersion == "" || options.ResourceVersion == "0"
	}
	return m.watchUntilEnd(w)
}

func (m *run) watchUntilEnd(w *openWatch) state {
	defer m.close(w)
	for {
		event, end, err := m.next(waiting{events: w.ResultChan(), timer: w.deadline.C()})
		switch end {
		case endEvent:
			if err := m.handle(w, event); err != nil {
				return m.watchFailed(err, m.began(w), false)
			}
		case endClosed:
			return m.watchClosed(w)
		case endTimer:
			return m.watchFailed(ErrWatchOverdue, m.began(w), false)
		case endResync:
			return m.watchFailed(err, m.began(w), false)
		default:
			return nil
		}
	}
}

// began is when the request was made that a failure of w counts from: a watch
// that has lived does not count as a failed request.
func (m *run) began(w *openWatch) time.Time {
	if now := m.clock.Now(); now.Sub(w.opened) >= shortWatch {
		return now
	}
	return w.opened
}

// watchClosed answers the end of a watch without an error. Every watch ends so
// at its timeout; one that ended early is followed by a pause.
func (m *run) watchClosed(w *openWatch) state {
	lived := m.clock.Since(w.opened)
	klog.FromContext(m.ctx).V(4).Info("Watch closed", "reflector", m.name, "type", m.typeDescription, "events", w.events, "lived", lived)
	m.progress.retry.After(nil)
	switch {
	case lived < veryShortWatch && w.events == 0:
		return m.watchFailed(&VeryShortWatchError{Name: m.name}, w.opened, false)
	case lived < shortWatch:
		return m.pause(failure{began: w.opened, requests: 1, progress: w.moved}, (*run).watchState)
	}
	m.succeeded(PhaseWatching)
	m.progress.watchFailures = 0
	return (*run).watchState
}

// watchFailed reports what went wrong with a watch and says what comes next.
// refused is true if it was the request.
func (m *run) watchFailed(err error, began time.Time, refused bool) state {
	if m.ctx.Err() != nil {
		return nil
	}
	m.progress.retry.After(err)
	action := answerToWatch(CauseOf(err))
	if m.round && !m.sameRound(err, action) {
		if refused {
			m.note(err)
			m.result = err
		} else {
			m.failed(m.ctx, err)
		}
		return nil
	}
	m.failed(m.ctx, err)
	f := failure{began: began, requests: 1, retryAfter: retryAfter(err)}
	switch action {
	case watchAgainAtOnce:
		return (*run).watchState
	case watchAgain:
		return m.pause(f, (*run).watchState)
	case watchWithDeadline:
		if m.progress.retry.ShouldRetry() {
			return m.pause(f, (*run).watchState)
		}
	case watchThenList:
		m.progress.watchFailures++
		if m.progress.watchFailures < watchesBeforeList {
			return m.pause(f, (*run).watchState)
		}
	case listNewest:
		m.progress.newest, m.progress.anyVersion = true, true
	}
	m.progress.watchFailures = 0
	return m.pauseForState(f)
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

// pauseForState pauses before getting a whole state.
func (m *run) pauseForState(f failure) state {
	// A list is followed by a watch, so two requests are to fit; a stream is its
	// own watch.
	if f.requests = 2; m.mayStream() {
		f.requests = 1
	}
	pause := m.progress.backoff.pause(m.clock.Now(), f)
	return m.sleep(pause, func(m *run) state { return m.firstState() })
}
