package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
)

// inflow receives what a watch sends while the run applies what came before, for as long as
// that comes faster than it can be applied:
//
//	source ──▶ the watch's channel ──▶ inflow ──▶ batches ──▶ run
//
// Most sources send over a channel without a buffer, so that who applies events itself meets
// the source once for each, and neither goes on while the other works. An event that comes
// alone would come later this way, by what it takes to wake one goroutine more: so there is an
// inflow only while there is a flood.
//
// It is the run's, which ends it, and waits for that, before it ends the watch.
type inflow struct {
	// batches are what came, in its order. They are closed once nothing more will be received:
	// the watch has closed, or has sent an error.
	batches chan []watch.Event
	// stop ends it, done is closed when it has ended; rest is then what was not handed over.
	stop, done chan struct{}
	rest       []watch.Event
	// lone is how many batches in a row had one event, and quiet fires when none has come for
	// some time. They are the run's own.
	lone  int
	quiet clock.Timer
}

const (
	// inflowLen is up to how many events are received ahead, some 8 kB; as many are being
	// applied. With half as many more time goes into waking one another.
	inflowLen = 8 * directly
	// A flood is over after so many batches of one event, or so long without any.
	loneBatches = 8
	floodQuiet  = time.Second
)

// beginFlood has the rest of a watch received ahead, from now on.
func (m *run) beginFlood(w *openWatch, taker eventsTaker) {
	w.inflow = &inflow{
		batches: make(chan []watch.Event), quiet: m.clock.NewTimer(floodQuiet),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	taker.flood(true)
	go w.inflow.receive(w.results)
}

// receive has two rooms: while one is handed over, and applied, it fills the other. Who takes
// a batch has done with the one before.
func (f *inflow) receive(results <-chan watch.Event) {
	defer close(f.done)
	var batch, other []watch.Event = make([]watch.Event, 0, inflowLen), make([]watch.Event, 0, inflowLen)
	over := false
	for {
		in, out := results, f.batches
		if over || len(batch) == inflowLen {
			in = nil
		}
		if len(batch) == 0 {
			out = nil
		}
		if in == nil && out == nil {
			close(f.batches)
			return
		}
		select {
		case e, open := <-in:
			if open {
				batch = append(batch, e)
			}
			// What comes after an error is not of this watch: some sources, made for tests,
			// have one channel for all.
			over = !open || e.Type == watch.Error
		case out <- batch:
			batch, other = other[:0], batch
		case <-f.stop:
			f.rest = batch
			return
		}
	}
}

// end ends it, and returns what it has received and not handed over.
func (f *inflow) end() (rest []watch.Event) {
	close(f.stop)
	<-f.done
	return f.rest
}

// waits is what an open watch waits for: the source, or its inflow.
func (w *openWatch) waits() waiting {
	waits := waiting{events: w.results, timer: w.timer.C()}
	if w.check != nil {
		waits.done = w.check.done
	}
	if w.inflow != nil {
		waits.events, waits.flood, waits.quiet = nil, w.inflow.batches, w.inflow.quiet.C()
	}
	return waits
}

// handleFlood applies a batch of the watch's inflow, and ends that when the flood is over: when
// there is no more, or little comes. The error, if any, ends the watch.
func (m *run) handleFlood(w *openWatch, batch []watch.Event) error {
	if w.inflow.lone++; len(batch) > 1 {
		w.inflow.lone = 0
	}
	over := len(batch) == 0 || w.inflow.lone == loneBatches
	if err := m.handleReceived(w, batch); err != nil {
		return err
	}
	if over {
		return m.drain(w)
	}
	w.inflow.quiet.Reset(floodQuiet)
	return nil
}

// drain ends the watch's inflow, if it has one, and applies what that has received.
func (m *run) drain(w *openWatch) error {
	if w.inflow == nil {
		return nil
	}
	defer m.floodIsOver(w) // also if user code panics: the inflow is ended once
	return m.handleReceived(w, w.inflow.end())
}

// floodIsOver gives back what a flood is applied with. The inflow has ended.
func (m *run) floodIsOver(w *openWatch) {
	w.inflow.quiet.Stop()
	w.inflow = nil
	m.burst, m.said, m.events, m.refused = nil, nil, nil, nil
	m.store.(eventsTaker).flood(false)
}

// handleReceived applies events, and forgets them.
func (m *run) handleReceived(w *openWatch, events []watch.Event) error {
	defer clear(events)
	taker := m.store.(eventsTaker) // else nobody has made an inflow
	for len(events) > 0 && m.ctx.Err() == nil {
		some := events[:min(len(events), directly)]
		m.burst = append(m.burst, some...)
		if err := m.handleBurst(w, taker); err != nil {
			return err
		}
		events = events[len(some):]
	}
	return nil
}
