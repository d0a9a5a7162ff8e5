package cache

import (
	"runtime"
	"slices"

	"k8s.io/apimachinery/pkg/watch"
)

// Events that come faster than they are applied: those that wait in the watch's channel
// already go into the store together, if it takes several for what one costs. Nobody waits
// for an event that is not there yet, and after so many the context and the timers are
// looked at again.

// burstLen is how many times in a row events are taken without looking at anything else but
// the context.
const burstLen = 8

// handleSeveral applies an event of a watch that has been waited for, and those that come
// while it does. An event that comes alone is not held up to see whether another one follows.
func (m *run) handleSeveral(w *openWatch, e watch.Event) error {
	err := m.handleSome(w, e, false)
	for range burstLen {
		if err != nil || m.ctx.Err() != nil || w.inflow != nil {
			return err
		}
		following, there := w.nextThere(true)
		if !there {
			return nil
		}
		err = m.handleSome(w, following, true)
	}
	return err
}

// handleSome applies an event of a watch, and those after it that are there already. busy
// says that the source was waiting to send it. The error, if any, ends the watch.
func (m *run) handleSome(w *openWatch, e watch.Event, busy bool) error {
	taker, ours := m.store.(eventsTaker)
	if !ours {
		return m.handle(w, e)
	}
	m.burst = append(m.burst, e)
	// What comes after an error is not of this watch: some sources, made for tests, have one
	// channel for all.
	for len(m.burst) < directly && m.burst[len(m.burst)-1].Type != watch.Error {
		following, more := w.nextThere(busy)
		if !more {
			break
		}
		m.burst = append(m.burst, following)
	}
	full := busy && len(m.burst) == directly
	err := m.handleBurst(w, taker)
	if full && err == nil {
		m.beginFlood(w, taker)
	}
	return err
}

// handleBurst applies the events that were collected, and forgets them: those that are
// ordinary together.
func (m *run) handleBurst(w *openWatch, taker eventsTaker) error {
	defer m.forgetBurst()
	m.said = slices.Grow(m.said, len(m.burst))[:len(m.burst)]
	m.events = slices.Grow(m.events, len(m.burst))
	readTogether(m.said, func(i int) any { return m.burst[i].Object })
	from := m.progress.version
	for i := range m.burst {
		e, says := m.burst[i], &m.said[i]
		if e.Type == watch.Error {
			return m.lastly(w, taker, func() error { return eventError(e.Object) })
		}
		version, bad := m.meet(w, e, says)
		kind, ordinary := deltaTypeOf(e.Type)
		if bad != nil || !ordinary {
			err := m.lastly(w, taker, func() error { return m.handleMet(w, e, version, bad) })
			if err != nil || m.ctx.Err() != nil {
				return err
			}
			from = m.progress.version
			continue
		}
		to := w.advance(version, from)
		if to != "" {
			from = to
		}
		m.collect(kind, e.Object, says, to)
	}
	return m.deliverSome(w, taker)
}

// collect collects an ordinary event, for which there is room.
func (m *run) collect(kind DeltaType, obj any, says *metadata, version string) {
	at := len(m.events)
	m.events = m.events[:at+1]
	e := &m.events[at] // append would put it together elsewhere first
	e.kind, e.obj, e.says, e.version = kind, obj, says, version
}

// nextThere is the next event, if it is there; a channel that is closed is met again by who
// waits. Most sources send over a channel without a buffer: then the next event is there if
// the sender has been let run since the last one was received, for which yields gives way.
// That costs less than to sleep until it has been, and lets those go on who have been told
// of what came before.
func (w *openWatch) nextThere(yields bool) (e watch.Event, there bool) {
	select {
	case e, there = <-w.results:
		return e, there
	default:
	}
	if !yields {
		return e, false
	}
	runtime.Gosched()
	select {
	case e, there = <-w.results:
	default:
	}
	return e, there
}

// lastly delivers what was collected, and then does something else.
func (m *run) lastly(w *openWatch, taker eventsTaker, then func() error) error {
	if err := m.deliverSome(w, taker); err != nil || m.ctx.Err() != nil {
		return err // in the second case what came before may not have been taken
	}
	return then()
}

func (m *run) forgetBurst() {
	clear(m.burst)
	clear(m.said)
	m.burst, m.said = m.burst[:0], m.said[:0]
	m.forgetEvents()
}

func (m *run) forgetEvents() {
	clear(m.events)
	clear(m.refused)
	m.events, m.refused = m.events[:0], m.refused[:0]
}

// deliverSome hands the store what is ordinary of what was collected.
func (m *run) deliverSome(w *openWatch, taker eventsTaker) error {
	defer m.forgetEvents()
	for events := m.events; len(events) > 0 && m.ctx.Err() == nil; {
		taken, refused, err := taker.takeEvents(events, m.refused[:0])
		m.refused = refused
		m.settle(w, events[:taken], refused)
		if err != nil {
			return err
		}
		events = events[taken:]
	}
	return nil
}

// settle reports what was refused, and moves the version to where the events have brought
// it.
func (m *run) settle(w *openWatch, events []event, refused []refusedEvent) {
	holds, to := m.holds(), ""
	for i := range events {
		e := &events[i]
		if e.version != "" {
			to = e.version
		}
		switch {
		case len(refused) > 0 && refused[0].at == i:
			m.setAside(e.kind == Deleted, e.obj, refused[0].err, heldIn(m.store, refused[0].err))
			refused, holds = refused[1:], true // until a later one of the same object
		case holds:
			m.released(e.obj)
		}
	}
	if to != "" {
		m.accept(w, to)
	}
}
