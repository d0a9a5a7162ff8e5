package simulation

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/watchmirror/cache"
)

// reasons are the causes for which a reflector abandons a request.
var reasons = []cache.Cause{"regression", "no-bookmark", cache.CauseOverdueWatch}

// checkReports checks that each failure was reported once, with a cause (G12).
func (w *world) checkReports() {
	// An error event may be read behind a batch of events whose functions are slow.
	slack := 33 * 2 * time.Duration(w.slowest.Load())
	for _, m := range w.mirrors {
		m.mu.Lock()
		reports := slices.Clone(m.reports)
		m.mu.Unlock()
		for _, t := range m.taps {
			t.mu.Lock()
			faults := slices.Clone(t.faults)
			t.mu.Unlock()
			for _, f := range faults {
				n, abandoned := 0, false
				for _, r := range reports {
					isInTime := !r.at.Before(f.at) && !r.at.After(f.at.Add(slack))
					if f.cause != "" && isInTime && cache.CauseOf(r.err) == f.cause {
						n = 1 // of another namespace's reflector may be a second one
					}
					n += strings.Count(r.text, faultMark(f.number))
					// A request that is given up for another reason may fail at that same moment: of a
					// list that regresses in time, or a stream that is late, only that is said.
					abandoned = abandoned || r.at.Equal(f.at) && slices.Contains(reasons, cache.CauseOf(r.err))
				}
				if n == 1 || (n == 0 && (f.excused || abandoned || m.stoppedBy(f.at.Add(slack)))) {
					continue
				}
				w.fail("G12: %s reported %d times: %v %s, of %v", m.name, n, f.err, faultMark(f.number), f.at.Sub(w.start))
			}
		}
		m.checkQuarantined(reports)
	}
	w.checkDamage()
}

// checkDamage checks that damaged responses were reported (B24). Some may have had no reader, but not
// all, unless all mirrors were stopped by then.
func (w *world) checkDamage() {
	const few = 4
	count, last := w.damage.count()
	if count < few || w.damage.reachedCaller.Load() {
		return
	}
	if !w.server.lastDeath().IsZero() {
		return // a dead connection has not carried what was damaged on it
	}
	stopped := true
	for _, m := range w.mirrors {
		stopped = stopped && m.stoppedBy(last)
		m.mu.Lock()
		reports := slices.Clone(m.reports)
		m.mu.Unlock()
		for _, r := range reports {
			switch cache.CauseOf(r.err) {
			case cache.CauseInvalidResponse, cache.CauseConnectionLost, cache.CauseStalled, "invalid-object":
				return
			}
		}
	}
	if !stopped {
		w.fail("B24: %d answers were damaged, and nobody has reported anything of it", count)
	}
}

// stoppedBy says whether the run's context had ended by then.
func (m *mirror) stoppedBy(at time.Time) bool {
	m.calls.mu.Lock()
	defer m.calls.mu.Unlock()
	return !m.calls.cancelled.IsZero() && !m.calls.cancelled.After(at)
}

// reportedAt says whether something was reported at that moment.
func (m *mirror) reportedAt(at time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.reports, func(r reported) bool { return r.at.Equal(at) })
}

// checkQuarantined checks that each quarantined object was reported, by key (G6).
func (m *mirror) checkQuarantined(reports []reported) {
	if m.stopped() {
		return
	}
	known := map[string]bool{}
	for _, r := range reports {
		var object *cache.ObjectError
		if errors.As(r.err, &object) {
			known[object.Key] = true
		}
		var process *cache.ProcessError
		if errors.As(r.err, &process) {
			for _, key := range process.Keys {
				known[key] = true
			}
		}
	}
	for _, q := range m.status().Quarantined {
		if !known[q.Key] {
			m.world.fail("G6: %s quarantines %s, and has not reported it", m.name, q.Key)
		}
	}
}
