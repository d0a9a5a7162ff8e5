package simulation

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// finale ends all faults, waits for the time that G1 allows, and then compares the mirrors with
// the source.
func (w *world) finale() {
	w.note("-- finale")
	repaired := time.Now()
	w.heal()
	pause := max(pauseAtMost, time.Until(w.retryAfter))
	if w.restored && !w.script.Setup.RefuseFutureWatches {
		pause += restoreAtMost
	}
	if w.damage.damagedRecently() || slices.ContainsFunc(w.mirrors, (*mirror).hasUndecoded) {
		pause += damagedAtMost
	}
	pause += w.unnoticedAtMost()
	time.Sleep(pause)
	w.settle()
	if slices.ContainsFunc(w.mirrors, func(m *mirror) bool {
		return m.hasReportedSince(repaired, "regression") || m.hasReportedSince(repaired, "wrong-type")
	}) {
		// If a source regressed and has passed the mirror's version since, only the first list after
		// heal notices it, and another list follows after a pause (B15). Likewise after a list of
		// wrong types whose last page was requested after heal (B25).
		time.Sleep(pauseAtMost)
		w.settle()
	}
	w.check()
	w.allowNamespaces()
	if !slices.ContainsFunc(w.mirrors, func(m *mirror) bool { return m.hasReportedSince(repaired, "store-error") }) {
		w.compare("after the pause that G1 allows")
	}
	w.askFinally()
	w.damageLast()
	w.restoreLast()
	if slices.ContainsFunc(w.script.Steps, func(s script.Step) bool { return s.What == script.NotAllowed }) {
		time.Sleep(polling + time.Second) // what a lost event changed is seen by the next list
	}
	received, resyncs := w.received(), w.resyncs()
	time.Sleep(calm)
	w.settle()
	w.compare("after a calm")
	w.checkCalm(received, resyncs)
	w.compareSequences()
	w.checkRates()
	w.checkPauses()
	w.checkReports()
	w.stopAll()
}

// damageLast damages the frame of a last write on each watch, and checks that the write is shown
// although nothing follows it (B24).
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
	w.damage.begin(watchAnswer, script.Step{N: watches, What: script.DamagedByte, For: time.Duration(at - 1)})
	w.write(script.KeyAt(at), "", false)
	time.Sleep(pauseAtMost + damagedAtMost)
	w.damage.heal() // a watch of another namespace has not been sent anything
	w.settle()
	if !slices.ContainsFunc(w.mirrors, func(m *mirror) bool { return m.hasReportedSince(began, "store-error") }) {
		w.compare("after a damaged byte (B24)")
	}
}

// restoreLast reverts a healthy source to an older state, and checks that mirrors notice it although
// nothing is written after it (B23).
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

// restoreAtMost is the additional time to converge after a silent regression if failures have used
// up the requests that G13 allows: a refused watch, a check beside the next one, and a list, with
// a pause of a minute before each.
const restoreAtMost = 3 * time.Minute

// damagedAtMost is the additional time to converge after damage: the reader waits for the rest of a
// frame, and lists for undecoded items are a minute apart, within the limits of G13.
const damagedAtMost = 2 * time.Minute

// forgottenAtMost is the additional time to converge if versions are forgotten: three empty watches
// with pauses, and a list (B28).
const forgottenAtMost = 4 * time.Minute

// fruitlessAtMost is the same if such lists have found nothing before, because watches ended early for
// another reason: the next one follows after an hour.
const fruitlessAtMost = time.Hour + forgottenAtMost

// deadAtMost is the time after which the death of a connection is noticed: the longest timeout of a
// watch, and the grace after it (B30).
const deadAtMost = 10*time.Minute + 31*time.Second

// unnoticedAtMost is the additional time to converge after faults that do not end, and that the mirrors
// have to notice.
func (w *world) unnoticedAtMost() time.Duration {
	pause := time.Duration(0)
	if w.server != nil && !w.server.lastDeath().IsZero() {
		pause += max(0, deadAtMost-time.Since(w.server.lastDeath()))
	}
	switch {
	case !w.proxy.hasForgotten():
	case w.endsWatchesEarly():
		pause += fruitlessAtMost
	default:
		pause += forgottenAtMost
	}
	return pause
}

// endsWatchesEarly says whether any watch may have ended cleanly before its timeout, other than
// because the server has forgotten its present version.
func (w *world) endsWatchesEarly() bool {
	steps := map[string]int{}
	for _, s := range w.script.Steps {
		steps[s.Do]++
	}
	isClosed := steps["close-watches"] > 0 || steps["close-next-watches"] > 0
	// In a namespace without changes, the list after a forgotten version finds nothing.
	isForgottenTwice := steps["forget"] > 1
	return isClosed || isForgottenTwice || w.proxy.endsWatches() || w.oldLists.Load()
}

// allowNamespaces compares the other namespaces if some are forbidden, and then allows them.
func (w *world) allowNamespaces() {
	if !w.proxy.forbidsAny() {
		return
	}
	for _, m := range w.mirrors {
		if m.setup.HasNamespaces() && !m.stopped() {
			m.compareAllowed()
		}
	}
	w.proxy.forbid("")
	time.Sleep(pauseAtMost)
	w.settle()
	w.check()
}

// compareAllowed compares the namespaces that are not forbidden.
func (m *mirror) compareAllowed() {
	shown := map[string]*Object{}
	for _, obj := range m.list() {
		if o := asObject(obj); o != nil && !m.world.proxy.isForbidden(o.Namespace) {
			shown[keyOf(o)] = o
		}
	}
	now := m.world.truth.now()
	for key := range now {
		namespace, _ := script.SplitKey(key)
		if m.world.proxy.isForbidden(namespace) {
			delete(now, key)
		}
	}
	m.compareContent("beside forbidden namespaces", now, shown)
}

// heal ends all faults, and writes objects again that could not be applied because of them.
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
	w.proxy.heal()
	if w.server != nil {
		w.server.Listener.Heal()
	}
	w.settle() // else a watch that was delayed is opened in the middle of what follows
	if w.silent.Load() || w.restored && slices.ContainsFunc(w.mirrors, func(m *mirror) bool {
		return slices.ContainsFunc(m.taps, (*tap).abandonedVersionChecks)
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

// hasReportedSince says whether it has reported a cause since a time. After the refusal of a foreign
// store, and after a regression, a list follows after another pause.
func (m *mirror) hasReportedSince(since time.Time, cause cache.Cause) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.reports, func(r reported) bool {
		return !r.at.Before(since) && cache.CauseOf(r.err) == cause
	})
}

// calm is the time without any change after all faults have ended.
const calm = 3 * time.Minute

// checkCalm checks that without changes no handler received anything but the resyncs that were due
// (B20).
func (w *world) checkCalm(received, resyncs map[*handler]int) {
	after := w.resyncs()
	for h, n := range w.received() {
		m := h.mirror
		if m.stopped() || m.hasQuarantined() {
			continue
		}
		again := after[h] - resyncs[h]
		if news := n - received[h] - again; news != 0 {
			w.fail("G1: %s received %d things while the source was calm", h.name, news)
		}
		if period := m.setup.Resync; period > 0 {
			if least := (int(calm/period) - 1) * len(h.shown()); again < least {
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

// hasUndecoded says whether it quarantines an object that could not be decoded. It lists that again once a watch has been
// open for some seconds, which may first be possible after heal.
func (m *mirror) hasUndecoded() bool {
	return slices.ContainsFunc(m.status().Quarantined, func(q cache.Quarantined) bool { return q.Stage == "decode" })
}

// hasQuarantined says whether it quarantines anything, which a later list may change.
func (m *mirror) hasQuarantined() bool { return len(m.status().Quarantined) > 0 }

// stopAbruptly ends every run in any state; calls that ignore their context or hang are released
// some time later.
func (w *world) stopAbruptly() {
	w.note("-- abrupt end")
	for _, m := range w.mirrors {
		m.stop()
	}
	time.Sleep(patience + 5*time.Second)
}

// stopAll ends all runs at the same moment, and checks that each returns at once.
func (w *world) stopAll() {
	for _, m := range w.mirrors {
		m.stop()
	}
	for _, m := range w.mirrors {
		m.await()
	}
}

// afterwards checks that nothing is left after everything has been stopped.
func (w *world) afterwards() {
	for _, m := range w.mirrors {
		m.checkKeptSnapshots()
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
