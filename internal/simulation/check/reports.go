package check

import (
	"errors"
	"slices"
	"strings"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// reasons are the causes for which a reflector abandons a request.
var reasons = []cache.Cause{"regression", "no-bookmark", cache.CauseOverdueWatch}

// checkReports checks that each failure was reported once, with a cause (G12).
func checkReports(w *world.World, mirrors []*Mirror) {
	for _, m := range mirrors {
		reports := m.reportsSoFar()
		for _, h := range m.Client.Histories() {
			for _, f := range h.Faults {
				m.checkReported(f, reports)
			}
		}
		m.checkQuarantined(reports)
	}
	checkDamage(w, mirrors)
}

// checkReported checks that a failure was reported once.
func (m *Mirror) checkReported(f world.Fault, reports []report) {
	slack := m.slack()
	n := 0
	isAbandoned := false
	for _, r := range reports {
		isInTime := !r.at.Before(f.At) && !r.at.After(f.At.Add(slack))
		if f.Cause != "" && isInTime && cache.CauseOf(r.err) == f.Cause {
			n = 1 // of another namespace's reflector may be a second one
		}
		n += strings.Count(r.text, world.FaultMark(f.Number))
		// A request that is given up for another reason may fail at that same moment: of a
		// list that regresses in time, or a stream that is late, only that is said.
		isAbandoned = isAbandoned || r.at.Equal(f.At) && slices.Contains(reasons, cache.CauseOf(r.err))
	}
	isExcused := f.Excused || isAbandoned || m.stoppedBy(f.At.Add(slack))
	if n == 1 || n == 0 && isExcused {
		return
	}
	m.World.Fail("G12: %s reported %d times: %v %s, of %v",
		m.Name, n, f.Err, world.FaultMark(f.Number), f.At.Sub(m.World.Start))
}

// checkDamage checks that damaged responses were reported (B24). Some may have had no reader, but
// not all, unless all mirrors were stopped by then.
func checkDamage(w *world.World, mirrors []*Mirror) {
	const few = 4
	count, last := w.Damage.Count()
	if count < few || w.Damage.HasReachedCaller() {
		return
	}
	if !w.LastDeath().IsZero() {
		return // a dead connection has not carried what was damaged on it
	}
	stopped := true
	for _, m := range mirrors {
		stopped = stopped && m.stoppedBy(last)
		for _, r := range m.reportsSoFar() {
			switch cache.CauseOf(r.err) {
			case cache.CauseInvalidResponse, cache.CauseConnectionLost, cache.CauseStalled, "invalid-object":
				return
			}
		}
	}
	if !stopped {
		w.Fail("B24: %d answers were damaged, and nobody has reported anything of it", count)
	}
}

// checkQuarantined checks that each quarantined object was reported, by key (G6).
func (m *Mirror) checkQuarantined(reports []report) {
	if m.Stopped() {
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
	for _, q := range m.Status().Quarantined {
		if !known[q.Key] {
			m.World.Fail("G6: %s quarantines %s, and has not reported it", m.Name, q.Key)
		}
	}
}

// reportsSoFar returns a copy of its reports.
func (m *Mirror) reportsSoFar() []report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.reports)
}
