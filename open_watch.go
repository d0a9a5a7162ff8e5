package cache

import (
	"context"
	"runtime/debug"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// watchGrace is how long after the timeout that a watch asked for it is taken for
// half open: time for a server under load to end it, and for the end to arrive.
const watchGrace = 30 * time.Second

// openWatch is a watch and what is known of it. Whoever has it closes it.
type openWatch struct {
	sourceWatch
	cancel context.CancelFunc
	// asked is when the request was made, answered when the source had accepted
	// it.
	asked, answered time.Time
	// expires is the deadline: by then the source should have ended the watch. timer
	// fires when the watch must be looked at, then at the latest.
	expires time.Time
	timer   clock.Timer
	// ticked is when it was last asked whether the watch is silent, counted how many
	// events it had brought by then, silent for how many ticks in a row that was so.
	ticked          time.Time
	counted, silent int
	// synthetic is true while the events may be those that a server makes up
	// for a watch from "" or "0", which come in no version order. They end at
	// the first that is not Added.
	synthetic bool
	// opened is true once the source has accepted it in time.
	opened bool
	events int
	// moved is true once the watch has moved the version.
	moved bool
}

// sourceWatch is what a source returned, and its channel, asked for once.
type sourceWatch struct {
	watch   watch.Interface
	results <-chan watch.Event
}

// watchOptions are those of any watch. Bookmarks are asked for, and nothing
// depends on their coming. To a server a timeout of 0 would be none at all.
func (m *run) watchOptions(version string) (metav1.ListOptions, time.Duration) {
	spread := m.maxWatchTimeout - m.minWatchTimeout
	timeout := m.minWatchTimeout + time.Duration(m.random()*float64(spread))
	seconds := max(1, int64(timeout/time.Second))
	return metav1.ListOptions{
		ResourceVersion:     version,
		TimeoutSeconds:      &seconds,
		AllowWatchBookmarks: true,
	}, timeout
}

// open asks the source for a watch that is to last for timeout, and has patience
// for so long with the request. The deadline of the watch counts from before it: a
// connection can be half open before the answer's first byte. The watch is nil,
// without an error, if the context ended.
func (m *run) open(options metav1.ListOptions, timeout, patience time.Duration) (*openWatch, error) {
	ctx, cancel := context.WithCancel(m.ctx)
	w := &openWatch{cancel: cancel, asked: m.clock.Now(), timer: m.clock.NewTimer(timeout + watchGrace)}
	w.expires = w.asked.Add(timeout + watchGrace)
	defer func() {
		if !w.opened {
			m.close(w)
		}
	}()
	m.progress.backoff.note(request{at: w.asked})
	m.meters.watchBegins()
	limit := m.clock.NewTimer(patience)
	defer limit.Stop()
	answer := askWithin(m, ctx, cancel, sourceCall{op: "Watch", limit: limit.C()}, func(ctx context.Context) (sourceWatch, error) {
		opened, err := m.source.WatchWithContext(ctx, options)
		if err != nil || isNilPointer(opened) {
			return sourceWatch{}, err
		}
		return sourceWatch{opened, opened.ResultChan()}, nil
	})
	w.sourceWatch, w.answered = answer.value, m.clock.Now()
	w.ticked = w.answered
	switch {
	case answer.late:
		return nil, ErrWatchOverdue
	case answer.err != nil || answer.ended:
		return nil, answer.err
	case w.results == nil:
		return nil, ErrNilWatch
	}
	w.opened = true
	return w, nil
}

// close ends a watch and waits for the source to have heard it. A panic of the watch's Stop comes
// out of it.
func (m *run) close(w *openWatch) { m.closeAfter(w, false) }

// closeAfter is close that may be called while the run panics. That panic is the one to come out
// of Run: one of Stop is logged.
func (m *run) closeAfter(w *openWatch, panicking bool) {
	m.meters.watchEnded(w)
	w.timer.Stop()
	w.cancel()
	if w.watch == nil {
		return
	}
	done := make(chan struct{})
	var panicked *PanicError
	go func() {
		defer close(done)
		defer func() {
			if value := recover(); value != nil {
				panicked = &PanicError{Value: value, Stack: debug.Stack()}
			}
		}()
		w.watch.Stop()
	}()
	m.awaitSlow("Stop", done)
	switch {
	case panicked != nil && panicking:
		klog.FromContext(m.ctx).Error(panicked, "Stop of a watch panicked as well", "reflector", m.name, "type", m.typeDescription)
	case panicked != nil:
		panic(panicked)
	}
}

// dropStream ends the watch that a streaming list left for the watch state, if
// that was never reached.
func (m *run) dropStream(panicking bool) {
	if m.stream != nil {
		m.closeAfter(m.stream, panicking)
		m.stream = nil
	}
}

// lived is how long a watch has been of use. It counts from the answer: a request
// that hung for a while and was closed as soon as it was answered has not lived.
// But some proxies withhold the answer until the first event.
func (w *openWatch) lived(now time.Time) time.Duration {
	if w.events > 0 {
		return now.Sub(w.asked)
	}
	return now.Sub(w.answered)
}
