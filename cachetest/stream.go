package cachetest

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is the server's side of one watch. Its goroutine reads the history from
// a cursor of its own, one change at a time, so that a slow reader costs nothing
// but the cursor.
type stream struct {
	source    *Source
	ctx       context.Context // of the call that opened the watch
	options   metav1.ListOptions
	selection selection
	result    chan watch.Event
	stop      sync.Once
	stopped   chan struct{} // closed by Stop
	finished  chan struct{} // closed when the goroutine has ended
	wake      chan struct{} // holds one token: there may be something to do

	// The rest is guarded by the source's mu.

	request *Request
	// cursor is the version up to which changes were read from the history.
	cursor uint64
	// initial is the state sent first, as far as it has not been sent.
	initial *snapshot
	sent    int // objects of initial
	// owesEnd: the bookmark that ends the initial events is still to be sent.
	owesEnd bool
	// mute: that bookmark is withheld until Heal, hence the periodic ones too.
	mute bool
	// inserted is what the script puts between the changes.
	inserted []insertion
	// end is how the watch is scripted to end, nil if it is not.
	end *streamEnd
}

// insertion is something in the stream that is not in the history.
type insertion struct {
	// after is the version whose changes go before it.
	after uint64
	// event is sent as it is, unless the insertion is a bookmark.
	event    watch.Event
	bookmark bool
	version  uint64 // of the bookmark
	// last ends the watch; without a type of event nothing else is sent.
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

// run sends what there is to send until the watch ends.
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

// leave takes the watch out of the source.
func (w *stream) leave() {
	s := w.source
	s.mu.Lock()
	delete(s.watches, w)
	w.request.Ended = time.Now()
	s.mu.Unlock()
	close(w.result)
	close(w.finished)
}

// step is what the watch does next. The event is made outside of the lock; make
// is nil when there is none, and says false when the watch does not see it.
type step struct {
	make  func() (watch.Event, bool)
	times int
	last  bool
}

func sendOnce(make func() (watch.Event, bool)) step { return step{make: make, times: 1} }

// next takes the next step: the scripted end, else the initial events, their end,
// then changes and insertions in the order in which they happened.
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
		// The initial state's version, or a later one if Heal ended the withholding
		// once changes had been sent: a bookmark must not go back behind them.
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
		// A watch from a version not reached yet stays there.
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

// insertionLocked takes the first insertion.
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

// bookmark makes an object of the source's type with nothing in it but a version.
func (w *stream) bookmark(version uint64, endsInitial bool) watch.Event {
	obj := w.source.newObject()
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetResourceVersion(formatVersion(version))
		if endsInitial {
			accessor.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		}
	}
	return watch.Event{Type: watch.Bookmark, Object: obj}
}

// idle waits for something to do. It says false when the watch ends.
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
			// Both at the same instant: which one wins must not be a matter of luck.
			return !w.timedOut(c)
		}
		w.tick()
		return true
	}
}

// timedOut is asked when the deadline passes. The end of a silent watch does not
// get through: it is made up for when the silence ends.
func (w *stream) timedOut(c *clock) bool {
	c.late = w.silent()
	return !c.late
}

func (w *stream) silent() bool {
	w.source.mu.Lock()
	defer w.source.mu.Unlock()
	return w.source.faults.silent
}

// tick puts a periodic bookmark behind what has happened so far.
func (w *stream) tick() {
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.mute && !s.faults.silent && w.cursor <= s.history.version {
		w.insertLocked(insertion{bookmark: true, version: s.history.version})
	}
}

// deliver hands over one event, after the scripted delay and when the watch is
// not silent. It says false when the watch ends first.
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
		// An ended watch must not win a race against its reader.
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

// pause keeps an event back as long as the script says.
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

// waitDelay waits for the delay of one event, counted from now. A change of the
// script wakes the watch, so the delay is read again each time. Taking the token
// loses nothing: after the event the watch looks for more to do in any case.
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

// copyEvent copies an event with its object, if it has one.
func copyEvent(event watch.Event) watch.Event {
	if event.Object != nil {
		event.Object = event.Object.DeepCopyObject()
	}
	return event
}
