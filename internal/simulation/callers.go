package simulation

import (
	"slices"
	"time"

	"github.com/watchmirror/cache/internal/simulation/check"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// freshStep writes, and calls Fresh.
func (r *run) freshStep(s script.Step) {
	if s.Key != "" {
		r.world.Write(s.Key, "", false)
	}
	r.ask("Fresh", r.mirrorAt(s.Mirror))
}

// verifyStep calls Verify.
func (r *run) verifyStep(s script.Step) { r.ask("Verify", r.mirrorAt(s.Mirror)) }

// lose makes the watches of an informer lose their next events.
func (r *run) lose(s script.Step) {
	m := r.mirrorAt(s.Mirror)
	if m.Verify == nil {
		return // only Verify would find it
	}
	m.Client.LoseEvents(s.N)
}

// ask makes a call on its own goroutine, for which the world waits at its end.
func (r *run) ask(what string, m *mirror) {
	if m.Verify == nil || !m.begun() {
		return
	}
	q := check.NewQuestion(what, m.Mirror)
	r.questions.Go(func() { _ = q.Send(r.ctx) }) // send checks the error
}

// askFinally calls Fresh of each running informer after a last write to a healthy source, and
// Verify after its watches have lost an event of a random kind.
func (r *run) askFinally() {
	kept, lost := script.KeyAt(0), script.KeyAt(len(script.Namespaces)) // of one namespace
	for _, m := range r.mirrors {
		if m.Verify == nil || m.Stopped() {
			continue
		}
		plant := r.world.Draw(3)
		if r.world.Write(lost, "", false); plant == 0 {
			r.world.Remove(lost, false)
		}
		r.world.CloseWatches()   // an open one may be set to break at its next event
		time.Sleep(backoffReset) // else a list is followed by a pause before the watch, as G13 asks for
		r.world.Write(kept, "", false)
		r.askHealthy("Fresh", m)
		r.askHealthy("Verify", m)
		m.Client.LoseEvents(1)
		if plant == 1 {
			r.world.Remove(lost, false)
		} else {
			r.world.Write(lost, "", false)
		}
		settle()
		hasLost := m.Client.StopLosing()
		r.world.Write(kept, "", false) // advances the version past the lost event
		settle()
		var expected []string
		isOld := !m.LooksLike(lost, m.Get(lost))(r.world.Truth.Now()[lost])
		if hasLost && isOld { // else its watch was not open
			expected = []string{lost}
		}
		if found := r.askHealthy("Verify", m); !slices.Equal(found, expected) {
			r.world.Fail("G1: Verify of %s found %v, and events were lost of %v", m.Name, found, expected)
		}
		if found := r.askHealthy("Verify", m); len(found) > 0 {
			r.world.Fail("G1: Verify of %s has found %v again", m.Name, found)
		}
	}
}

// backoffReset is the time without failures that resets a reflector's backoff.
const backoffReset = 2*time.Minute + time.Second

// askHealthy makes a call that must succeed because the source is healthy.
func (r *run) askHealthy(what string, m *mirror) (found []string) {
	q := check.NewQuestion(what, m.Mirror)
	err := q.Send(r.ctx)
	if !q.Whole {
		r.world.Fail("G1: %s of %s, of a source that is well: %v", what, m.Name, err)
	}
	settle()
	return q.Differences
}
