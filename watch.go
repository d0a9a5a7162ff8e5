// The state in which a watch is open: it is requested, its events are applied until it ends, and it
// is stopped. What follows a watch? Its events are in watch_events.go, its times in watch_timer.go.

package cache

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache/internal/backoff"
)

// openWatch is a watch that is open or being opened.
type openWatch struct {
	run *run
	// reflector and progress are the run's.
	reflector *Reflector
	progress  *progress
	watch     watch.Interface
	ctx       context.Context
	cancel    context.CancelFunc
	// waits are the channels that the watch waits for, with its events once it is open.
	waits waitChannels
	// listing is not nil until the bookmark that ends a streaming list.
	listing *listing
	// from is the first version, version the newest one that the watch has sent.
	from    string
	version string
	// requestedAt is the time of the request, answeredAt that of its response, zero if the watch
	// was refused.
	requestedAt time.Time
	answeredAt  time.Time
	// expires is the time after which the watch counts as half open: timeout and watchGrace after
	// the request.
	expires time.Time
	timeout time.Duration
	// timer fires when handleTimer is due.
	timer clock.Timer
	// synthetic is true while the events may be the initial ones of a watch from "" or "0", which
	// are in no version order. It is false from the first event that is not Added.
	synthetic bool
	// events counts all events but Errors, knownEvents those of a type that is known.
	events      int
	knownEvents int
	// batch has the events that are being applied.
	batch []change
	// successful is true once the watch has ended a series of reported failures, or if there was
	// none.
	successful bool
}

const (
	// A watch that ends before veryShortWatch and without an event has failed, as in client-go.
	veryShortWatch = time.Second
	// successfulAfter is how long a watch must be open to end a series of reported failures.
	successfulAfter = 10 * time.Second
	// lateAnswer is the delay of a watch's response after which the server may have restarted.
	lateAnswer = time.Second
	// shortestDelayed is the shortest watch whose response may have been delayed until its end. With
	// a shorter timeout, a server that has forgotten the version (B28) could look the same.
	shortestDelayed = time.Minute
	// watchGrace is the time that a server has to end a watch after its timeout. Then the watch
	// counts as half open.
	watchGrace = 30 * time.Second
)

// watchState opens a watch from the store's version, or the streaming list l, and applies its
// events until it ends.
func (m *run) watchState(l *listing) state {
	w, err := m.open(l)
	if err == nil {
		err = w.applyEvents()
	}
	now := m.clock.Now()
	lived := w.lived(now)
	if err == nil {
		lived = w.livedUntilClosed(now)
	}
	w.stop()
	if w.listing != nil {
		return m.streamFailed(w, err)
	}
	if m.ctx.Err() != nil {
		return stateEnd
	}
	if w.answeredAt.IsZero() {
		return m.fail(failedAttempt{
			activity: PhaseWatching,
			err:      err,
			began:    w.requestedAt,
			request:  true,
		})
	}
	return m.watchEnded(w, err, lived)
}

// open requests a watch from the store's version, or the streaming list l, and waits for the
// response.
func (m *run) open(l *listing) (*openWatch, error) {
	timeout := m.reflector.randomWatchTimeout()
	options := m.watchOptions(l, timeout)
	if l == nil {
		m.reflector.setPhase(PhaseWatching)
	} else {
		m.reflector.setPhase(PhaseStreaming)
		inc(m.reflector.metrics.lists)
	}
	inc(m.reflector.metrics.watches)
	w := m.newWatch(l, timeout)
	w.synthetic = l != nil || startsWithState(options.ResourceVersion)
	m.watch = w
	m.listIsNew = false
	m.progress.backoff.RecordRequest(w.requestedAt, false)
	if err := w.request(options); err != nil {
		return w, err
	}
	w.recordResponse()
	return w, nil
}

// randomWatchTimeout returns a timeout in the configured range.
func (r *Reflector) randomWatchTimeout() time.Duration {
	shortest := r.options.MinWatchTimeout
	spread := r.options.MaxWatchTimeout - shortest
	return shortest + time.Duration(r.options.Random()*float64(spread))
}

func (m *run) watchOptions(l *listing, timeout time.Duration) metav1.ListOptions {
	options := metav1.ListOptions{
		ResourceVersion:     m.progress.version,
		AllowWatchBookmarks: true,
		ShardSelector:       m.reflector.shard.Selector(),
		TimeoutSeconds:      new(int64(serverTimeout(timeout) / time.Second)),
	}
	if l == nil {
		return options
	}
	if m.mustListNewest() {
		options.ResourceVersion = ""
	}
	options.SendInitialEvents = ptr.To(true)
	options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	return options
}

// serverTimeout returns the timeout that is requested of the server: whole seconds, and at least
// one, since 0 means no timeout.
func serverTimeout(timeout time.Duration) time.Duration {
	return max(time.Second, timeout.Truncate(time.Second))
}

// newWatch makes a watch that is not requested yet. Its deadline begins now, because a connection
// can be half open before the first byte.
func (m *run) newWatch(l *listing, timeout time.Duration) *openWatch {
	now := m.clock.Now()
	w := &openWatch{
		run:         m,
		reflector:   m.reflector,
		progress:    m.progress,
		listing:     l,
		requestedAt: now,
		timeout:     timeout,
		expires:     now.Add(timeout + watchGrace),
	}
	w.ctx, w.cancel = context.WithCancel(m.ctx)
	limit := timeout + watchGrace
	if l != nil {
		limit = streamQuiet
	}
	w.timer = m.clock.NewTimer(limit)
	w.waits.timer = w.timer.C()
	return w
}

// request requests the watch from the source and waits for the response.
func (w *openWatch) request(options metav1.ListOptions) error {
	_, err := w.run.callSource("Watch", w.cancel, w.waits, nil, func() error {
		opened, err := w.reflector.source.WatchWithContext(w.ctx, options)
		if err != nil {
			return err
		}
		if isNilPointer(opened) {
			return errNilWatch
		}
		w.watch = opened // before ResultChan, which may panic
		w.waits.events = opened.ResultChan()
		return nil
	})
	if err == nil && w.waits.events == nil {
		return errNilWatch
	}
	return err
}

// recordResponse records that the source has accepted the watch.
func (w *openWatch) recordResponse() {
	w.answeredAt = w.run.clock.Now()
	// Some clients repeat the request themselves while the server is unavailable.
	if w.answeredAt.Sub(w.requestedAt) >= lateAnswer {
		w.progress.checks.want()
	}
	w.successful = !w.reflector.hasFailed()
	if w.listing != nil {
		return // a streaming list proves nothing before its end
	}
	w.progress.failedWatches.refused = false
	w.follow(w.progress.version)
	w.reflector.setCurrent("watch")
}

// follow makes the watch one of the changes after a version.
func (w *openWatch) follow(version string) {
	w.from = version
	w.version = version
	w.waits.relistRequests = w.reflector.relistRequests
}

// lived returns how long the watch has been open. Its time counts from the response or, if it had
// events, from the request: some proxies delay the response until the first event.
func (w *openWatch) lived(now time.Time) time.Duration {
	if w.events > 0 {
		return now.Sub(w.requestedAt)
	}
	return now.Sub(w.answeredAt)
}

// livedUntilClosed is lived for a watch that the source closes now. One that lasted for its timeout
// counts from the request too: such proxies delay the response of an idle watch until its end.
func (w *openWatch) livedUntilClosed(now time.Time) time.Duration {
	sinceRequest := now.Sub(w.requestedAt)
	if sinceRequest >= max(serverTimeout(w.timeout), shortestDelayed) {
		return sinceRequest
	}
	return w.lived(now)
}

// isVeryShort reports whether a watch that ends now has failed.
func (w *openWatch) isVeryShort(lived time.Duration) bool {
	return w.events == 0 && lived < veryShortWatch
}

// isEmpty reports whether the watch was short and had no event of a known type: see emptyWatches.
func (w *openWatch) isEmpty(lived time.Duration) bool {
	return w.knownEvents == 0 && lived < w.timeout/2
}

// stop stops the watch and waits until Stop has returned, so that no connection is open during a
// pause. The version check beside the watch is canceled with it.
func (w *openWatch) stop() {
	w.run.watch = nil
	if !w.answeredAt.IsZero() {
		lived := w.run.clock.Since(w.answeredAt)
		observe(w.reflector.metrics.watchDuration, lived.Seconds())
		observe(w.reflector.metrics.itemsInWatch, float64(w.events))
	}
	w.timer.Stop()
	w.cancel()
	if w.watch != nil {
		w.run.await("Stop", callAsync(w.watch.Stop))
	}
}

// watchEnded returns the state after a watch that was open. err is nil if the source closed it.
func (m *run) watchEnded(w *openWatch, err error, lived time.Duration) state {
	ended := backoff.Watch{
		Requested: w.requestedAt,
		Lived:     lived,
		Advanced:  w.version != w.from,
		Failed:    err != nil,
	}
	if ended.Worked() {
		m.progress.failedWatches = failedWatches{}
		m.progress.expired = ""
		m.afterPause = false
	}
	if err == nil {
		return m.watchClosed(w, ended)
	}
	if errors.Is(err, errRefetch) {
		return m.listNext(err.Error())
	}
	failed := failedAttempt{activity: PhaseWatching, err: err, began: w.requestedAt}
	if ended.Worked() {
		failed.began = m.clock.Now()
		failed.worked = &ended
	}
	return m.fail(failed)
}

// watchClosed returns the state after a watch that the source has closed. That is no failure,
// unless the watch was very short.
func (m *run) watchClosed(w *openWatch, ended backoff.Watch) state {
	m.reflector.logger(m.ctx).V(4).Info("Watch closed", "events", w.events, "lived", ended.Lived)
	if w.isEmpty(ended.Lived) {
		m.progress.emptyWatches.record(w.version, m.clock.Now())
	} else {
		m.progress.emptyWatches.reset()
	}
	if w.isVeryShort(ended.Lived) {
		return m.fail(failedAttempt{
			activity: PhaseWatching,
			err:      &VeryShortWatchError{Name: m.reflector.name},
			began:    w.requestedAt,
		})
	}
	if ended.Worked() {
		m.reflector.recordSuccess(m.ctx)
	}
	if m.progress.emptyWatches.listWanted {
		next := m.listNext("watches have ended without an event")
		return m.pauseUntil(m.attemptAfterWatch(next, ended))
	}
	return m.pauseUntil(m.attemptAfterWatch(stateWatch, ended))
}
