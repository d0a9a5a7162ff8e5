package cache

import "k8s.io/apimachinery/pkg/watch"

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
	// batches are what came, in its order. It is closed once nothing more will be received:
	// the watch has closed, or has sent an error.
	batches chan []watch.Event
	// stop ends it, done is closed when it has ended; rest is then what was not handed over.
	stop, done chan struct{}
	rest       []watch.Event
	// lone is how many batches in a row had one event. It is the run's own.
	lone int
}

const (
	// inflowLen is up to how many events are received ahead, some 8 kB; as many are being
	// applied. With half as many more time goes into waking one another.
	inflowLen = 8 * directly
	// loneBatches is after how many batches of one event a flood is over.
	loneBatches = 8
)

func newInflow(results <-chan watch.Event) *inflow {
	f := &inflow{batches: make(chan []watch.Event), stop: make(chan struct{}), done: make(chan struct{})}
	go f.receive(results)
	return f
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

// received is where the events come from: the watch itself, or its inflow.
func (w *openWatch) received() (events <-chan watch.Event, flood <-chan []watch.Event) {
	if w.inflow != nil {
		return nil, w.inflow.batches
	}
	return w.results, nil
}

// handleFlood applies a batch of the watch's inflow, and ends that when the flood is over: when
// there is no more, or little comes. The error, if any, ends the watch.
func (m *run) handleFlood(w *openWatch, batch []watch.Event) error {
	if w.inflow.lone++; len(batch) > 1 {
		w.inflow.lone = 0
	}
	over := len(batch) == 0 || w.inflow.lone == loneBatches
	if err := m.handleReceived(w, batch); err != nil || !over {
		return err
	}
	return m.drain(w)
}

// drain ends the watch's inflow, if it has one, and applies what that has received.
func (m *run) drain(w *openWatch) error {
	if w.inflow == nil {
		return nil
	}
	rest := w.inflow.end()
	w.inflow = nil
	return m.handleReceived(w, rest)
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
