package cachetest

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is the server side of one watch. Its goroutine reads the history with a cursor, one change
// at a time, so a slow reader costs no memory.
type stream struct {
	source    *Source
	ctx       context.Context // of the Watch call
	options   metav1.ListOptions
	selection selection
	result    chan watch.Event
	stop      sync.Once
	stopped   chan struct{} // closed by Stop
	finished  chan struct{} // closed when the goroutine has ended
	wake      chan struct{} // has one token if there may be something to do

	// The fields below are guarded by the source's mu.

	request *Request
	// cursor is the version up to which changes were read from the history.
	cursor uint64
	// initial is the state of the initial events, until all are sent.
	initial *snapshot
	sent    int // sent objects of initial
	// owesEnd: the bookmark that ends the initial events has not been sent yet.
	owesEnd bool
	// mute: that bookmark and the periodic ones are withheld until Heal.
	mute bool
	// inserted has the script's insertions between changes.
	inserted []insertion
	// end is the scripted end of the watch, or nil.
	end *streamEnd
}

// insertion is something that the stream sends and the history does not have.
type insertion struct {
	// after is the version whose changes are sent before it.
	after uint64
	// event is sent unchanged, unless the insertion is a bookmark.
	event    watch.Event
	bookmark bool
	version  uint64 // of the bookmark
	// last ends the watch; without an event type nothing is sent before the end.
	last bool
}

// ResultChan implements watch.Interface.
func (w *stream) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface. It does not wait for the goroutine.
func (w *stream) Stop() {
	w.stop.Do(func() { close(w.stopped) })
}

func (w *stream) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *stream) insertLocked(i insertion) {
	i.after = w.source.history.version
	w.inserted = append(w.inserted, i)
	w.wakeUp()
}

// run sends events until the watch ends.
func (w *stream) run() {
	defer w.leave()
	clock := w.startClock()
	defer clock.stop()
	for {
		if clock.late && !w.silent() {
			return
		}
		next := w.next()
		if next.make != nil {
			event, visible := next.make()
			for range next.times {
				if visible && !w.deliver(clock, event) {
					return
				}
			}
		}
		if next.last || (next.make == nil && !w.idle(clock)) {
			return
		}
	}
}

// leave removes the watch from the source.
func (w *stream) leave() {
	s := w.source
	s.mu.Lock()
	delete(s.watches, w)
	w.request.Ended = time.Now()
	s.mu.Unlock()
	close(w.result)
	close(w.finished)
}

// step is the next action of a watch. make returns the event, without the lock, and false if the
// watch does not select it; it is nil if there is no event.
type step struct {
	make  func() (watch.Event, bool)
	times int
	last  bool
}

func sendOnce(make func() (watch.Event, bool)) step { return step{make: make, times: 1} }

// next returns the next step: the scripted end, else the initial events and their end, then changes
// and insertions in order.
func (w *stream) next() step {
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.faults.silent:
		return step{}
	case w.end != nil && w.request.Events >= w.end.after:
		w.end.plan.fire()
		return w.endWith(w.end.err)
	case w.initial != nil && w.sent < len(w.initial.objects):
		obj := w.initial.objects[w.sent]
		w.sent++
		return sendOnce(func() (watch.Event, bool) {
			if !w.selection.matches(obj) {
				return watch.Event{}, false
			}
			return watch.Event{Type: watch.Added, Object: obj.DeepCopyObject()}, true
		})
	case w.owesEnd && !w.mute:
		w.owesEnd = false
		// The initial state's version, or a later one if changes were sent before Heal: a bookmark
		// must not be older than they are.
		return w.bookmarkLocked(w.cursor, true)
	}
	w.initial = nil
	if w.cursor < s.history.dropped {
		return w.endWith(errTooOld(w.cursor, s.history.compacted))
	}
	c, more := s.history.after(w.cursor)
	if len(w.inserted) > 0 && (!more || w.inserted[0].after < c.version) {
		return w.insertionLocked()
	}
	if !more {
		// A watch from a future version stays there.
		w.cursor = max(w.cursor, s.history.version)
		return step{}
	}
	w.cursor = c.version
	return sendOnce(func() (watch.Event, bool) { return w.selection.translate(c) })
}

// endWith ends the watch, with an error event if err is not nil.
func (w *stream) endWith(err error) step {
	if err == nil {
		return step{last: true}
	}
	last := sendOnce(func() (watch.Event, bool) { return errorEvent(err), true })
	last.last = true
	return last
}

// insertionLocked returns the step for the first insertion.
func (w *stream) insertionLocked() step {
	first := w.inserted[0]
	w.inserted = w.inserted[1:]
	if first.bookmark {
		return w.bookmarkLocked(first.version, false)
	}
	if first.last && first.event.Type == "" {
		return step{last: true}
	}
	next := sendOnce(func() (watch.Event, bool) { return copyEvent(first.event), true })
	next.last = first.last
	return next
}

func (w *stream) bookmarkLocked(version uint64, endsInitial bool) step {
	next := sendOnce(func() (watch.Event, bool) { return w.bookmark(version, endsInitial), true })
	if w.source.faults.doubleBookmarks {
		next.times = 2
	}
	return next
}

// bookmark returns a bookmark: an empty object of the source's type with a version.
func (w *stream) bookmark(version uint64, endsInitial bool) watch.Event {
	obj := w.source.NewObject()
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetResourceVersion(formatVersion(version))
		if endsInitial {
			accessor.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		}
	}
	return watch.Event{Type: watch.Bookmark, Object: obj}
}

// idle waits for something to do. It returns false when the watch ends.
func (w *stream) idle(c *clock) bool {
	select {
	case <-w.stopped:
		return false
	case <-w.ctx.Done():
		return false
	case <-w.wake:
		return true
	case <-c.deadline:
		return !w.timedOut(c)
	case <-c.last:
		w.tick()
		return true
	case <-c.bookmark:
		if c.deadlinePassed() {
			// Both fired at the same instant: the result must not depend on which one select chose.
			return !w.timedOut(c)
		}
		w.tick()
		return true
	}
}

// timedOut is called when the deadline passes. It returns false if the watch is silent: then the
// watch ends when the silence ends.
func (w *stream) timedOut(c *clock) bool {
	c.late = w.silent()
	return !c.late
}

func (w *stream) silent() bool {
	w.source.mu.Lock()
	defer w.source.mu.Unlock()
	return w.source.faults.silent
}

// tick appends a periodic bookmark to the changes so far.
func (w *stream) tick() {
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.mute && !s.faults.silent && w.cursor <= s.history.version {
		w.insertLocked(insertion{bookmark: true, version: s.history.version})
	}
}

// deliver sends one event, after the scripted delay and once the watch is not silent. It returns
// false if the watch ends first.
func (w *stream) deliver(c *clock, event watch.Event) bool {
	if !w.pause(c) {
		return false
	}
	select {
	case <-w.stopped:
		return false
	case <-w.ctx.Done():
		return false
	default:
		// Check first, so that an ended watch never delivers.
	}
	for {
		select {
		case w.result <- event:
			w.source.mu.Lock()
			w.request.Events++
			w.source.mu.Unlock()
			return true
		case <-w.stopped:
			return false
		case <-w.ctx.Done():
			return false
		case <-c.deadline:
			if w.timedOut(c) {
				return false
			}
		}
	}
}

// pause delays an event as scripted. It returns false if the watch ends first.
func (w *stream) pause(c *clock) bool {
	if w.eventDelay() > 0 && !w.waitDelay(c) {
		return false
	}
	for w.silent() {
		if !w.idle(c) {
			return false
		}
	}
	return !c.late
}

// waitDelay waits for the delay of one event, counted from now. A change of the script wakes the
// watch, so the delay is read again each time. Consuming the wake token is safe: the watch looks
// for more work after the event anyway.
func (w *stream) waitDelay(c *clock) bool {
	start := time.Now()
	timer := time.NewTimer(w.eventDelay())
	defer timer.Stop()
	for {
		left := w.eventDelay() - time.Since(start)
		if left <= 0 {
			return true
		}
		timer.Reset(left)
		select {
		case <-timer.C:
		case <-w.wake:
		case <-w.stopped:
			return false
		case <-w.ctx.Done():
			return false
		case <-c.deadline:
			if w.timedOut(c) {
				return false
			}
		}
	}
}

func (w *stream) eventDelay() time.Duration {
	w.source.mu.Lock()
	defer w.source.mu.Unlock()
	return w.source.faults.eventDelay
}

// copyEvent copies an event and its object.
func copyEvent(event watch.Event) watch.Event {
	if event.Object != nil {
		event.Object = event.Object.DeepCopyObject()
	}
	return event
}
