package simulation

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/watchmirror/cache"
)

// Callers ask informers whether they are fresh, and whether they equal the source, in the middle of whatever happens. What Fresh
// or Verify has returned without an error must have missed nothing that was committed before the call, and what Verify reports
// must be a difference. Only a watch that loses an event (the step "lose") or is not sent one (the step "hide") makes any.

// callerPatience is how long a caller waits for an answer: longer than a healthy source needs.
const callerPatience = time.Minute

// callerKey marks the context of a caller: its requests are not the reflector's.
type callerKey struct{}

func isOfCaller(ctx context.Context) bool { return ctx.Value(callerKey{}) != nil }

// question is one call of Fresh or Verify.
type question struct {
	mirror *mirror
	what   string
	// since is the moment up to which everything had been committed when it was asked, turns how often the source had been
	// something else than it said by then.
	since int
	turns int64
	// differences are those that it found, and whole is false if it could not look at everything.
	differences []string
	whole       bool
}

// freshStep writes, and asks whether what was written is there.
func (w *world) freshStep(s Step) {
	if s.Key != "" {
		w.write(s.Key, "", false)
	}
	w.ask("Fresh", w.mirrorAt(s.Mirror))
}

// verifyStep asks whether a mirror equals the source.
func (w *world) verifyStep(s Step) { w.ask("Verify", w.mirrorAt(s.Mirror)) }

// lose has the watches of an informer lose their next events.
func (w *world) lose(s Step) {
	m := w.mirrorAt(s.Mirror)
	if m.verify == nil {
		return // nothing would find that
	}
	for _, t := range m.taps {
		t.lost.Store(int64(s.N))
	}
}

// ask asks on a goroutine of its own, for which the world waits at its end.
func (w *world) ask(what string, m *mirror) {
	if m.verify == nil || !m.begun() {
		return
	}
	q := w.question(what, m)
	w.questions.Go(func() { q.ask(w.ctx) })
}

func (w *world) question(what string, m *mirror) *question {
	return &question{mirror: m, what: what, since: w.truth.present(), turns: w.turns.Load(), whole: true}
}

// ask asks, and checks what can be read once there is an answer.
func (q *question) ask(ctx context.Context) error {
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
	q.answers(err)
	damaged := w.damage.since(began)
	if damaged || err != nil {
		w.damage.metCaller.Store(true)
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
	case w.turns.Load() > q.turns || w.oldLists.Load():
		// The source has said that it is what it is not: that the version is an older one.
	default:
		for _, key := range q.differences {
			if !w.truth.isHidden(key) {
				w.fail("G1: Verify of %s reports %s, which does not differ", m.name, key)
			}
		}
		if q.whole && !damaged {
			q.missesNothing()
		}
	}
	return err
}

// answers notes what an error says. Several namespaces have one each.
func (q *question) answers(err error) {
	var found *cache.DivergenceError
	several, joined := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case joined:
		for _, one := range several.Unwrap() {
			q.answers(one)
		}
	case errors.As(err, &found):
		q.differences = slices.Concat(q.differences, found.Missing, found.Extra, found.Outdated)
	default:
		q.whole = false
	}
}

// missesNothing checks that no state is shown that was over before the question. Verify has found lost events, which Fresh
// knows nothing of.
func (q *question) missesNothing() {
	m, truth := q.mirror, q.mirror.world.truth
	shown := map[string]*Object{}
	for _, obj := range m.list() {
		if o := asObject(obj); o != nil {
			shown[keyOf(o)] = o
		}
	}
	m.world.checked()
	for key, now := range truth.now() {
		// One that Verify misses in two states, of which each may have been deleted after its list, is no difference yet.
		if truth.isHidden(key) && (q.what == "Fresh" || shown[key] == nil && now.moment > q.since) {
			continue
		}
		if len(intersect([]span{{q.since, math.MaxInt}}, truth.allSpans(key, m.looks(key, shown[key])))) == 0 {
			m.world.fail("G1: %s of %s has returned, and it shows %s, which was over when it was asked", q.what, m.name,
				describe(key, shown[key]))
		}
	}
}

// askAtLast asks each informer that runs, of a source that is well, whether a last write is there, and whether it finds what its
// watches lose: an event of a random kind.
func (w *world) askAtLast() {
	kept, lost := keyAt(0), keyAt(len(namespaces)) // of one namespace
	for _, m := range w.mirrors {
		if m.verify == nil || m.stopped() {
			continue
		}
		plant := w.random.IntN(3)
		if w.write(lost, "", false); plant == 0 {
			w.remove(lost, false)
		}
		w.source.CloseWatches()  // one that is open may be planned to break with its next event
		time.Sleep(backoffReset) // else a list is followed by a pause before the watch, as G13 asks for
		w.write(kept, "", false)
		w.askWell("Fresh", m)
		w.askWell("Verify", m)
		for _, t := range m.taps {
			t.lost.Store(1)
		}
		if plant == 1 {
			w.remove(lost, false)
		} else {
			w.write(lost, "", false)
		}
		w.settle()
		for _, t := range m.taps {
			t.lost.Store(0)
		}
		w.write(kept, "", false) // which moves the version past what was lost
		w.settle()
		var expected []string
		if !m.looks(lost, m.get(lost))(w.truth.now()[lost]) { // else its watch was not open
			expected = []string{lost}
		}
		if found := w.askWell("Verify", m); !slices.Equal(found, expected) {
			w.fail("G1: Verify of %s found %v, and events were lost of %v", m.name, found, expected)
		}
		if found := w.askWell("Verify", m); len(found) > 0 {
			w.fail("G1: Verify of %s has found %v again", m.name, found)
		}
	}
}

// backoffReset is how long nothing may fail until a reflector asks without pauses again.
const backoffReset = 2*time.Minute + time.Second

// askWell asks about a source that is well, which must be answered.
func (w *world) askWell(what string, m *mirror) (found []string) {
	q := w.question(what, m)
	err := q.ask(w.ctx)
	if !q.whole {
		w.fail("G1: %s of %s, of a source that is well: %v", what, m.name, err)
	}
	w.settle()
	return q.differences
}

// losesEvent says whether the watch of a reflector loses an event, and notes what then may not be shown.
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
