package simulation

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/watchmirror/cache"
)

// finale ends all faults, gives the mirrors the time that they are promised, and then
// compares all that they show with the source.
func (w *world) finale() {
	w.note("-- finale")
	repaired := time.Now()
	w.heal()
	pause := max(pauseAtMost, time.Until(w.retryAfter))
	if w.restored && !w.script.Setup.RefuseFutureWatches {
		pause += restoreAtMost
	}
	if w.damage.lately() {
		pause += damagedAtMost
	}
	time.Sleep(pause)
	w.settle()
	if slices.ContainsFunc(w.mirrors, func(m *mirror) bool {
		return m.hasReportedSince(repaired, "regression") || m.hasReportedSince(repaired, "wrong-type")
	}) {
		// A source that went back and came past the mirror's version again is only found out by
		// the first list after the healing: another follows, after a pause (B15). So it does after a
		// list of wrong types whose last page was asked for after the healing (B25).
		time.Sleep(pauseAtMost)
		w.settle()
	}
	w.look()
	if !slices.ContainsFunc(w.mirrors, func(m *mirror) bool { return m.hasReportedSince(repaired, "store-error") }) {
		w.compare("after the pause that G1 allows")
	}
	w.askAtLast()
	w.damageLast()
	w.restoreLast()
	received, resyncs := w.received(), w.resyncs()
	time.Sleep(calm)
	w.settle()
	w.compare("after a calm")
	w.calmed(received, resyncs)
	w.compareSequences()
	w.checkRates()
	w.checkReports()
	w.stopAll()
}

// damageLast damages the frame with which each watch is sent a last write, and checks that what was
// written is shown though nothing follows it (B24).
func (w *world) damageLast() {
	at := w.script.Setup.DamageLast
	if at <= 0 || w.server == nil {
		return
	}
	began := time.Now()
	watches := 0
	for _, m := range w.mirrors {
		if !m.stopped() {
			watches += len(m.taps)
		}
	}
	w.damage.begin(watchAnswer, Step{N: watches, What: damagedByte, For: time.Duration(at - 1)})
	w.write(keyAt(at), "", false)
	time.Sleep(pauseAtMost + damagedAtMost)
	w.damage.heal() // a watch of another namespace has not been sent anything
	w.settle()
	if !slices.ContainsFunc(w.mirrors, func(m *mirror) bool { return m.hasReportedSince(began, "store-error") }) {
		w.compare("after a damaged byte (B24)")
	}
}

// restoreLast takes a source that is well back to an older state, and checks that this is noticed
// though nothing is written after it (B23).
func (w *world) restoreLast() {
	n := w.script.Setup.RestoreLast
	if n == 0 {
		return
	}
	restored := time.Now()
	w.restore(n)
	time.Sleep(pauseAtMost + restoreAtMost)
	w.settle()
	if !slices.ContainsFunc(w.mirrors, func(m *mirror) bool { return m.hasReportedSince(restored, "store-error") }) {
		w.compare("after a restore (B23)")
	}
}

// restoreAtMost is how much longer it may take to follow a source that has regressed and does
// not say so, where a run of failures has used up what G13 allows: a watch that is refused, a
// check beside the next one, and a list, with a pause of a minute before each.
const restoreAtMost = 3 * time.Minute

// damagedAtMost is how much longer it may take after damage: a frame that does not end is
// waited for, and lists for undecoded items are a minute apart, within the limits of G13.
const damagedAtMost = 2 * time.Minute

// heal ends all faults, and writes anew what could not be applied because of them.
func (w *world) heal() {
	w.repaired.Store(true)
	w.transformsFail.Store(false)
	w.indexesFail.Store(false)
	w.transformTakes.Store(0)
	w.indexingTakes.Store(0)
	for _, m := range w.mirrors {
		for _, h := range m.handlers {
			h.release()
		}
	}
	w.source.Heal()
	w.wrongTypes.Store(0)
	for _, m := range w.mirrors {
		for _, t := range m.taps {
			t.lost.Store(0)
		}
	}
	w.damage.heal()
	if w.server != nil {
		w.server.Listener.Heal()
	}
	w.settle() // else a watch that was delayed is opened in the middle of what follows
	if w.silent.Load() || w.restored && slices.ContainsFunc(w.mirrors, func(m *mirror) bool {
		return slices.ContainsFunc(m.taps, (*tap).gaveUpChecks)
	}) {
		// Nobody but a list can tell of these.
		w.advance(0) // else present readers need not know
		w.source.CompactAll()
		w.source.BreakWatches(w.failure("expired"))
	}
	for _, key := range slices.Sorted(maps.Keys(w.truth.now())) {
		now := w.truth.now()[key]
		if now.present() && (w.refusedByAny(now.serial) || now.bad != "" && w.random.IntN(2) == 0) {
			w.write(key, "", false)
		}
	}
}

func (w *world) refusedByAny(serial int) bool {
	return slices.ContainsFunc(w.mirrors, func(m *mirror) bool { return m.hasRefused(serial) })
}

func (w *world) received() map[*handler]int {
	received := map[*handler]int{}
	for _, m := range w.mirrors {
		for _, h := range m.handlers {
			h.mu.Lock()
			received[h] = h.received
			h.mu.Unlock()
		}
	}
	return received
}

// hasReportedSince says whether it has reported a failure of a kind since: a refusal of a store
// that is not ours, and a source that went back, are followed by a list after another pause.
func (m *mirror) hasReportedSince(since time.Time, cause cache.Cause) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.reports, func(r reported) bool {
		return !r.at.Before(since) && cache.CauseOf(r.err) == cause
	})
}

// calm is how long nothing happens after everything was repaired.
const calm = 3 * time.Minute

// calmed checks that no handler received anything while nothing happened, but for resyncs,
// and those as often as they were due (B20).
func (w *world) calmed(received, resyncs map[*handler]int) {
	after := w.resyncs()
	for h, n := range w.received() {
		m := h.mirror
		if m.stopped() || m.heldInTheEnd() {
			continue
		}
		again := after[h] - resyncs[h]
		if news := n - received[h] - again; news != 0 {
			w.fail("G1: %s received %d things while the source was calm", h.name, news)
		}
		if period := m.setup.Resync; period > 0 {
			if least := (int(calm/period) - 1) * len(m.list()); again < least {
				w.fail("B20: %s was resynced %d times in %v of calm, at least %d were due", h.name, again, calm, least)
			}
		}
	}
}

func (w *world) resyncs() map[*handler]int {
	resyncs := map[*handler]int{}
	for _, m := range w.mirrors {
		for _, h := range m.handlers {
			h.mu.Lock()
			resyncs[h] = h.resyncs
			h.mu.Unlock()
		}
	}
	return resyncs
}

// heldInTheEnd says whether it quarantines anything that a list may change, be it one that
// comes in the calm.
func (m *mirror) heldInTheEnd() bool { return len(m.status().Quarantined) > 0 }

// abrupt ends every run in whatever it is doing; what ignores its context, and what hangs,
// is let go some time later.
func (w *world) abrupt() {
	w.note("-- abrupt end")
	for _, m := range w.mirrors {
		m.stop()
	}
	time.Sleep(patience + 5*time.Second)
}

// stopAll ends every run, at one moment, and checks that each returns at once.
func (w *world) stopAll() {
	for _, m := range w.mirrors {
		m.stop()
	}
	for _, m := range w.mirrors {
		m.await()
	}
}

// afterwards checks for leftovers once everything has been stopped.
func (w *world) afterwards() {
	for _, m := range w.mirrors {
		m.stillSo()
		if status := m.status(); status.Phase != cache.PhaseStopped {
			w.fail("G9: %s has returned from Run, and its phase is %s", m.name, status.Phase)
		}
		var slow *cache.SlowSourceError
		if m.calls.outlived && !slices.ContainsFunc(m.reports, func(r reported) bool { return errors.As(r.err, &slow) }) {
			w.fail("G9: %s waited for its source after the end of its context, and did not say so", m.name)
		}
	}
	if open := w.source.ActiveWatches(); open > 0 {
		w.fail("G9: %d watches are open after everything has stopped", open)
	}
}
