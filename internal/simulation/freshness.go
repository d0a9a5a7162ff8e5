package simulation

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// Callers call Fresh and Verify of informers at any time. If Fresh or Verify returns no error, the store must have everything that was
// committed before the call, and each difference that Verify reports must be one. Differences arise only if a watch loses an event (the
// step "lose") or does not receive one (the step "hide").

// callerPatience is the timeout of a caller: longer than a healthy source needs.
const callerPatience = time.Minute

// callerKey marks the context of a caller: its requests are not the reflector's.
type callerKey struct{}

func isOfCaller(ctx context.Context) bool { return ctx.Value(callerKey{}) != nil }

// callerRequest is one call of Fresh or Verify.
type callerRequest struct {
	mirror *mirror
	what   string
	// since is the moment of the call, turns the number of regressions of the source by then.
	since int
	turns int64
	// differences are those that it found; whole is false if it could not compare everything.
	differences []string
	whole       bool
}

// freshStep writes, and calls Fresh.
func (w *world) freshStep(s script.Step) {
	if s.Key != "" {
		w.write(s.Key, "", false)
	}
	w.ask("Fresh", w.mirrorAt(s.Mirror))
}

// verifyStep calls Verify.
func (w *world) verifyStep(s script.Step) { w.ask("Verify", w.mirrorAt(s.Mirror)) }

// lose makes the watches of an informer lose their next events.
func (w *world) lose(s script.Step) {
	m := w.mirrorAt(s.Mirror)
	if m.verify == nil {
		return // only Verify would find it
	}
	for _, t := range m.taps {
		t.lost.Store(int64(s.N))
	}
}

// ask makes a call on its own goroutine, for which the world waits at its end.
func (w *world) ask(what string, m *mirror) {
	if m.verify == nil || !m.begun() {
		return
	}
	q := w.question(what, m)
	w.questions.Go(func() { _ = q.send(w.ctx) }) // send checks the error
}

func (w *world) question(what string, m *mirror) *callerRequest {
	return &callerRequest{mirror: m, what: what, since: w.truth.present(), turns: w.regressions.Load(), whole: true}
}

// send asks, and checks what can be read once there is an answer.
func (q *callerRequest) send(ctx context.Context) error {
	m, w := q.mirror, q.mirror.world
	call := m.fresh
	if q.what == "Verify" {
		call = m.verify
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, callerKey{}, q), callerPatience)
	defer cancel()
	began := time.Now()
	m.asked.Add(1)
	err := call(ctx)
	m.asked.Add(-1)
	w.note("%s of %s returned after %v: %v", q.what, m.name, time.Since(began), err)
	q.recordErrors(err)
	damaged := w.damage.damagedSince(began)
	if damaged || err != nil {
		w.damage.reachedCaller.Store(true)
	}
	switch stopped := m.calls.cancelledAt(); {
	case time.Since(began) > callerPatience:
		w.fail("G9: %s of %s returned %v after its context had ended", q.what, m.name, time.Since(began)-callerPatience)
	case !stopped.IsZero() && time.Now().After(stopped) && began.Before(stopped):
		w.fail("G9: %s of %s returned %v after the informer had been stopped", q.what, m.name, time.Since(stopped))
	case errors.Is(err, cache.ErrInformerStopped):
		if stopped.IsZero() {
			w.fail("G9: %s of %s says that it has stopped, and it has not", q.what, m.name)
		}
	case w.regressions.Load() > q.turns || w.oldLists.Load():
		// The source claimed an older version than it has.
	default:
		for _, key := range q.differences {
			if !w.truth.isHidden(key) {
				w.fail("G1: Verify of %s reports %s, which does not differ", m.name, key)
			}
		}
		if q.whole && !damaged {
			q.checkNothingMissed()
		}
	}
	return err
}

// recordErrors notes what an error says. Several namespaces have one each.
func (q *callerRequest) recordErrors(err error) {
	var found *cache.DivergenceError
	several, joined := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case joined:
		for _, one := range several.Unwrap() {
			q.recordErrors(one)
		}
	case errors.As(err, &found):
		q.differences = slices.Concat(q.differences, found.Missing, found.Extra, found.Outdated)
	default:
		q.whole = false
	}
}

// checkNothingMissed checks that no shown state was replaced before the call. Verify finds lost events, Fresh does not.
func (q *callerRequest) checkNothingMissed() {
	m, truth := q.mirror, q.mirror.world.truth
	shown := map[string]*Object{}
	for _, obj := range m.list() {
		if o := asObject(obj); o != nil {
			shown[keyOf(o)] = o
		}
	}
	m.world.checked()
	for key, now := range truth.now() {
		// If each of two listed states may have been deleted after its list, their absence is no difference yet.
		if truth.isHidden(key) && (q.what == "Fresh" || shown[key] == nil && now.moment > q.since) {
			continue
		}
		if len(intersect([]span{{q.since, math.MaxInt}}, truth.allSpans(key, m.looksLike(key, shown[key])))) == 0 {
			m.world.fail("G1: %s of %s has returned, and it shows %s, which was over when it was asked", q.what, m.name,
				describe(key, shown[key]))
		}
	}
}

// askFinally calls Fresh of each running informer after a last write to a healthy source, and Verify after its watches have lost an
// event of a random kind.
func (w *world) askFinally() {
	kept, lost := script.KeyAt(0), script.KeyAt(len(script.Namespaces)) // of one namespace
	for _, m := range w.mirrors {
		if m.verify == nil || m.stopped() {
			continue
		}
		plant := w.random.IntN(3)
		if w.write(lost, "", false); plant == 0 {
			w.remove(lost, false)
		}
		w.source.CloseWatches()  // an open one may be set to break at its next event
		time.Sleep(backoffReset) // else a list is followed by a pause before the watch, as G13 asks for
		w.write(kept, "", false)
		w.askHealthy("Fresh", m)
		w.askHealthy("Verify", m)
		for _, t := range m.taps {
			t.lost.Store(1)
		}
		if plant == 1 {
			w.remove(lost, false)
		} else {
			w.write(lost, "", false)
		}
		w.settle()
		hasLost := false
		for _, t := range m.taps {
			isLost := t.lost.Swap(0) == 0
			hasLost = hasLost || isLost
		}
		w.write(kept, "", false) // advances the version past the lost event
		w.settle()
		var expected []string
		isOld := !m.looksLike(lost, m.get(lost))(w.truth.now()[lost])
		if hasLost && isOld { // else its watch was not open
			expected = []string{lost}
		}
		if found := w.askHealthy("Verify", m); !slices.Equal(found, expected) {
			w.fail("G1: Verify of %s found %v, and events were lost of %v", m.name, found, expected)
		}
		if found := w.askHealthy("Verify", m); len(found) > 0 {
			w.fail("G1: Verify of %s has found %v again", m.name, found)
		}
	}
}

// backoffReset is the time without failures that resets a reflector's backoff.
const backoffReset = 2*time.Minute + time.Second

// askHealthy makes a call that must succeed because the source is healthy.
func (w *world) askHealthy(what string, m *mirror) (found []string) {
	q := w.question(what, m)
	err := q.send(w.ctx)
	if !q.whole {
		w.fail("G1: %s of %s, of a source that is well: %v", what, m.name, err)
	}
	w.settle()
	return q.differences
}

// losesEvent says whether the watch of a reflector loses this event, and records the key.
func (t *tap) losesEvent(key string) bool {
	if t.lost.Load() <= 0 {
		return false
	}
	t.lost.Add(-1) // its watch is the only one that does
	w := t.mirror.world
	w.truth.hide(key)
	w.silent.Store(true)
	w.note("%s loses an event of %s", t.mirror.name, key)
	return true
}
