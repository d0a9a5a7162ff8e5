package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// calm is the time without any change after all faults have ended.
const calm = 3 * time.Minute

// handlerCalls are the numbers of calls of a handler.
type handlerCalls struct{ received, resyncs int }

// countCalls returns the calls of each handler so far.
func countCalls(mirrors []*Mirror) map[*Handler]handlerCalls {
	calls := map[*Handler]handlerCalls{}
	for _, m := range mirrors {
		for _, h := range m.handlers {
			calls[h] = h.calls()
		}
	}
	return calls
}

// checkCalm checks that without changes no handler has received anything but the resyncs that were
// due (B20).
func checkCalm(w *world.World, mirrors []*Mirror, before map[*Handler]handlerCalls) {
	for h, after := range countCalls(mirrors) {
		m := h.mirror
		if m.stopped() || m.hasQuarantined() {
			continue
		}
		again := after.resyncs - before[h].resyncs
		if news := after.received - before[h].received - again; news != 0 {
			w.Fail("G1: %s received %d things while the source was calm", h.name, news)
		}
		if period := m.setup.Resync; period > 0 {
			if least := (int(calm/period) - 1) * len(h.shown()); again < least {
				w.Fail("B20: %s was resynced %d times in %v of calm, at least %d were due", h.name, again, calm, least)
			}
		}
	}
}

// checkHistory checks everything that the mirrors have received, requested and reported.
func checkHistory(w *world.World, mirrors []*Mirror) {
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

// checkStopped checks that nothing is left after everything has been stopped.
func checkStopped(w *world.World, mirrors []*Mirror) {
	for _, m := range mirrors {
		m.checkKeptSnapshots()
		if status := m.status(); status.Phase != cache.PhaseStopped {
			w.Fail("G9: %s has returned from Run, and its phase is %s", m.name, status.Phase)
		}
		var slow *cache.SlowSourceError
		isReported := slices.ContainsFunc(m.reports, func(r report) bool { return errors.As(r.err, &slow) })
		if m.calls.outlived && !isReported {
			w.Fail("G9: %s waited for its source after the end of its context, and did not say so", m.name)
		}
	}
	checkReturns(w, mirrors)
	if open := w.Source.ActiveWatches(); open > 0 {
		w.Fail("G9: %d watches are open after everything has stopped", open)
	}
}
