package simulation

import (
	"maps"
	"slices"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/check"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// finale ends all faults, waits for the time that G1 allows, and then compares the mirrors with
// the source.
func (r *run) finale() {
	r.world.Note("-- finale")
	repaired := time.Now()
	r.heal()
	pause := max(check.PauseAtMost, r.world.UntilRetryAfter())
	if r.world.IsBehindNewest() {
		pause += restoreAtMost
	}
	if r.world.Damage.DamagedRecently() || slices.ContainsFunc(r.mirrors, (*mirror).HasUndecoded) {
		pause += damagedAtMost
	}
	pause += r.unnoticedAtMost()
	time.Sleep(pause)
	settle()
	r.awaitSecondList(repaired)
	r.check()
	r.allowNamespaces()
	if !r.hasReportedSince(repaired, "store-error") {
		r.compare("after the pause that G1 allows")
	}
	r.askFinally()
	r.damageLast()
	r.restoreLast()
	isPolled := slices.ContainsFunc(r.script.Steps, func(s script.Step) bool {
		return s.What == script.NotAllowed
	})
	if isPolled {
		time.Sleep(check.Polling + time.Second) // what a lost event changed is seen by the next list
	}
	before := check.CountCalls(r.checked())
	time.Sleep(check.CalmTime)
	settle()
	r.compare("after a calm")
	check.Calm(r.world, r.checked(), before)
	check.History(r.world, r.checked())
	r.stopAll()
}

// damageLast damages the frame of a last write on each watch, and checks that the write is shown
// although nothing follows it (B24).
func (r *run) damageLast() {
	at := r.script.Setup.DamageLast
	if at <= 0 || !r.world.HasNetwork() {
		return
	}
	began := time.Now()
	watches := 0
	for _, m := range r.mirrors {
		if !m.Stopped() {
			watches += m.Client.TapCount()
		}
	}
	r.world.Damage.BeginOnWatches(watches, at-1)
	r.world.Write(script.KeyAt(at), "", false)
	time.Sleep(check.PauseAtMost + damagedAtMost)
	r.world.Damage.Heal() // a watch of another namespace has not been sent anything
	settle()
	if !r.hasReportedSince(began, "store-error") {
		r.compare("after a damaged byte (B24)")
	}
}

// restoreLast reverts a healthy source to an older state, and checks that mirrors notice it
// although nothing is written after it (B23).
func (r *run) restoreLast() {
	n := r.script.Setup.RestoreLast
	if n == 0 {
		return
	}
	restored := time.Now()
	r.world.Restore(n)
	time.Sleep(check.PauseAtMost + restoreAtMost)
	settle()
	if !r.hasReportedSince(restored, "store-error") {
		r.compare("after a restore (B23)")
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

// fruitlessAtMost is the same if such lists have found nothing before, because watches ended early
// for another reason. The next one follows after an hour: else a proxy that ends every idle watch
// would cause a list each minute.
const fruitlessAtMost = time.Hour + forgottenAtMost

// deadAtMost is the time after which the death of a connection is noticed: the longest timeout of a
// watch, and the grace after it (B30).
const deadAtMost = 10*time.Minute + 31*time.Second

// unnoticedAtMost is the additional time to converge after faults that do not end, and that the
// mirrors have to notice.
func (r *run) unnoticedAtMost() time.Duration {
	pause := time.Duration(0)
	if died := r.world.LastDeath(); !died.IsZero() {
		pause += max(0, deadAtMost-time.Since(died))
	}
	switch {
	case !r.world.Proxy.HasForgotten():
	case r.endsWatchesEarly():
		pause += fruitlessAtMost
	default:
		pause += forgottenAtMost
	}
	return pause
}

// endsWatchesEarly says whether any watch may have ended cleanly before its timeout, other than
// because the server has forgotten its present version.
func (r *run) endsWatchesEarly() bool {
	steps := map[string]int{}
	for _, s := range r.script.Steps {
		steps[s.Do]++
	}
	isClosed := steps["close-watches"] > 0 || steps["close-next-watches"] > 0
	// In a namespace without changes, the list after a forgotten version finds nothing.
	isForgottenTwice := steps["forget"] > 1
	return isClosed || isForgottenTwice || r.world.Proxy.EndsWatches() || r.world.HasServedOldLists()
}

// allowNamespaces compares the other namespaces if some are forbidden, and then allows them.
func (r *run) allowNamespaces() {
	if !r.world.Proxy.ForbidsAny() {
		return
	}
	for _, m := range r.mirrors {
		if m.Setup.HasNamespaces() && !m.Stopped() {
			m.CompareAllowed()
		}
	}
	r.world.Proxy.Forbid("")
	allowed := time.Now()
	time.Sleep(check.PauseAtMost)
	settle()
	r.awaitSecondList(allowed)
	r.check()
}

// awaitSecondList waits for another list if the first one since then was refused. If a source
// regressed and has passed the mirror's version, only a list notices it, and the next one follows
// after a pause (B15). Likewise after a list of wrong types that began earlier (B25).
func (r *run) awaitSecondList(since time.Time) {
	if r.hasReportedSince(since, "regression") || r.hasReportedSince(since, "wrong-type") {
		time.Sleep(check.PauseAtMost)
		settle()
	}
}

// heal ends all faults, and writes objects again that could not be applied because of them.
func (r *run) heal() {
	r.world.Repair()
	for i := range r.mirrors {
		r.eachHandler(i, (*check.Handler).Release)
	}
	r.world.Heal()
	settle() // else a watch that was delayed is opened in the middle of what follows
	r.world.ForceLists()
	for _, key := range slices.Sorted(maps.Keys(r.world.Truth.Now())) {
		now := r.world.Truth.Now()[key]
		if now.Present() && (r.isRefusedByAny(now.Serial) || now.Bad != "" && r.world.Draw(2) == 0) {
			r.world.Write(key, "", false)
		}
	}
}

func (r *run) isRefusedByAny(serial int) bool {
	return slices.ContainsFunc(r.mirrors, func(m *mirror) bool { return m.HasRefused(serial) })
}

// hasReportedSince says whether any mirror has reported a cause since a time.
func (r *run) hasReportedSince(since time.Time, cause cache.Cause) bool {
	return slices.ContainsFunc(r.mirrors, func(m *mirror) bool {
		return m.HasReportedSince(since, cause)
	})
}
