package check

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Callers call Fresh and Verify of informers at any time. If Fresh or Verify returns no error, the
// store must have everything that was committed before the call, and each difference that Verify
// reports must be one. Differences arise only if a watch loses an event (the step "lose") or does
// not receive one (the step "hide").

// callerPatience is the timeout of a caller: longer than a healthy source needs.
const callerPatience = time.Minute

// Question is one call of Fresh or Verify.
type Question struct {
	mirror *Mirror
	what   string
	// since is the moment of the call, turns the number of regressions of the source by then.
	since int
	turns int64
	// Differences are those that it found; whole is false if it could not compare everything.
	Differences []string
	Whole       bool
}

// NewQuestion makes a call of Fresh or Verify at the present moment.
func NewQuestion(what string, m *Mirror) *Question {
	return &Question{
		mirror: m,
		what:   what,
		since:  m.World.Truth.Present(),
		turns:  m.World.RegressionCount(),
		Whole:  true,
	}
}

// Send asks, and checks what can be read once there is an answer.
func (q *Question) Send(ctx context.Context) error {
	m, w := q.mirror, q.mirror.World
	call := m.Fresh
	if q.what == "Verify" {
		call = m.Verify
	}
	ctx, cancel := context.WithTimeout(world.WithCaller(ctx), callerPatience)
	defer cancel()
	began := time.Now()
	m.Client.BeginQuestion()
	err := call(ctx)
	m.Client.EndQuestion()
	w.Note("%s of %s returned after %v: %v", q.what, m.Name, time.Since(began), err)
	q.recordErrors(err)
	damaged := w.Damage.DamagedSince(began)
	if damaged || err != nil {
		w.Damage.ReachCaller()
	}
	switch stopped := m.Calls.cancelledAt(); {
	case time.Since(began) > callerPatience:
		w.Fail("G9: %s of %s returned %v after its context had ended",
			q.what, m.Name, time.Since(began)-callerPatience)
	case !stopped.IsZero() && time.Now().After(stopped) && began.Before(stopped):
		w.Fail("G9: %s of %s returned %v after the informer had been stopped",
			q.what, m.Name, time.Since(stopped))
	case errors.Is(err, cache.ErrInformerStopped):
		if stopped.IsZero() {
			w.Fail("G9: %s of %s says that it has stopped, and it has not", q.what, m.Name)
		}
	case w.RegressionCount() > q.turns || w.HasServedOldLists():
		// The source claimed an older version than it has.
	default:
		for _, key := range q.Differences {
			if !w.Truth.IsHidden(key) {
				w.Fail("G1: Verify of %s reports %s, which does not differ", m.Name, key)
			}
		}
		if q.Whole && !damaged {
			q.checkNothingMissed()
		}
	}
	return err
}

// recordErrors notes what an error says. Several namespaces have one each.
func (q *Question) recordErrors(err error) {
	var found *cache.DivergenceError
	several, joined := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
	case joined:
		for _, one := range several.Unwrap() {
			q.recordErrors(one)
		}
	case errors.As(err, &found):
		q.Differences = slices.Concat(q.Differences, found.Missing, found.Extra, found.Outdated)
	default:
		q.Whole = false
	}
}

// checkNothingMissed checks that no shown state was replaced before the call. Verify finds lost
// events, Fresh does not.
func (q *Question) checkNothingMissed() {
	m, truth := q.mirror, q.mirror.World.Truth
	shown := map[string]*world.Object{}
	for _, obj := range m.List() {
		if o := AsObject(obj); o != nil {
			shown[world.KeyOf(o)] = o
		}
	}
	m.World.Checked()
	for key, now := range truth.Now() {
		// If each of two listed states may have been deleted after its list, their absence is no
		// difference yet.
		if truth.IsHidden(key) && (q.what == "Fresh" || shown[key] == nil && now.Moment > q.since) {
			continue
		}
		spans := truth.AllSpans(key, m.LooksLike(key, shown[key]))
		if len(world.Intersect(world.SpansFrom(q.since), spans)) == 0 {
			m.World.Fail("G1: %s of %s has returned, and it shows %s, which was over when it was asked",
				q.what, m.Name,
				describe(key, shown[key]))
		}
	}
}
