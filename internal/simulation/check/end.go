package check

import (
	"errors"
	"slices"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// CalmTime is the time without any change after all faults have ended.
const CalmTime = 3 * time.Minute

// handlerCalls are the numbers of calls of a handler.
type handlerCalls struct{ received, resyncs int }

// CountCalls returns the calls of each handler so far.
func CountCalls(mirrors []*Mirror) map[*Handler]handlerCalls {
	calls := map[*Handler]handlerCalls{}
	for _, m := range mirrors {
		for _, h := range m.Handlers {
			calls[h] = h.calls()
		}
	}
	return calls
}

// Calm checks that without changes no handler has received anything but the resyncs that were
// due (B20).
func Calm(w *world.World, mirrors []*Mirror, before map[*Handler]handlerCalls) {
	for h, after := range CountCalls(mirrors) {
		m := h.mirror
		if m.Stopped() || m.hasQuarantined() {
			continue
		}
		again := after.resyncs - before[h].resyncs
		if news := after.received - before[h].received - again; news != 0 {
			w.Fail("G1: %s received %d things while the source was calm", h.Name, news)
		}
		if period := m.Setup.Resync; period > 0 {
			if least := (int(CalmTime/period) - 1) * len(h.shown()); again < least {
				w.Fail("B20: %s was resynced %d times in %v of calm, at least %d were due",
					h.Name, again, CalmTime, least)
			}
		}
	}
}

// History checks everything that the mirrors have received, requested and reported.
func History(w *world.World, mirrors []*Mirror) {
	for _, m := range mirrors {
		m.compareSequences()
	}
	for _, m := range mirrors {
		m.checkRates()
	}
	for _, m := range mirrors {
		m.checkPauses()
	}
	checkReports(w, mirrors)
}

// Stopped checks that nothing is left after everything has been stopped.
func Stopped(w *world.World, mirrors []*Mirror) {
	for _, m := range mirrors {
		m.checkKeptSnapshots()
		if status := m.Status(); status.Phase != cache.PhaseStopped {
			w.Fail("G9: %s has returned from Run, and its phase is %s", m.Name, status.Phase)
		}
		var slow *cache.SlowSourceError
		isReported := slices.ContainsFunc(m.reports, func(r report) bool { return errors.As(r.err, &slow) })
		if m.Calls.outlived && !isReported {
			w.Fail("G9: %s waited for its source after the end of its context, and did not say so", m.Name)
		}
	}
	checkReturns(mirrors)
	if open := w.Source.ActiveWatches(); open > 0 {
		w.Fail("G9: %d watches are open after everything has stopped", open)
	}
}
