package check

import (
	"strconv"
	"sync"

	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// observer observes the states of keys over time, as a reader or a handler. The observed states of
// a key must be a subsequence of the source's (G2), unless the mirror has reported a regression.
type observer struct {
	mirror *Mirror
	what   string
	// receives, if not nil, says whether a state passes the observer's filter.
	receives func(world.State) bool

	mu sync.Mutex
	// at is the position in the life of each key.
	at map[string]int
	// back counts the regressions of each key.
	back map[string]int
}

// observe is called with each observed state; nil is absent.
func (o *observer) observe(key string, object *world.Object) {
	fits := o.matches(object)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at == nil {
		o.at, o.back = map[string]int{}, map[string]int{}
	}
	truth := o.mirror.World.Truth
	if found := truth.Find(key, o.at[key], fits); found >= 0 {
		o.at[key] = found
		return
	}
	found := truth.Find(key, 0, fits)
	switch {
	case found < 0:
		o.mirror.World.Fail("G2: %s shows %s, which the source never had", o.what, describe(key, object))
		return
	case o.mirror.Setup.Kind == script.KindOverlap:
		// The last list to commit decides, and the one before it may have been newer.
	case truth.WasUnwanted(key) && o.mirror.World.Proxy.WasEverBehind():
		// A list behind its items has dropped the key, and the watch replays states of it: without an
		// entry nothing tells that they are older.
	case o.mirror.World.Proxy.WasEverBehind() && o.mirror.World.HasServedOldLists():
		// A list behind its items has a lower version than they have, so that an older list may pass
		// for a newer one.
	case o.back[key] >= o.mirror.regressions():
		o.mirror.World.Fail("G2: %s regresses to %s, and %d regressions have been reported", o.what,
			describe(key, object), o.mirror.regressions())
	}
	o.back[key]++
	o.at[key] = found
}

// matches returns a function that says whether a state of the source may be shown as object.
func (o *observer) matches(object *world.Object) func(world.State) bool {
	if object == nil {
		return func(s world.State) bool {
			isFiltered := o.receives != nil && s.Present() && !o.receives(s)
			return isFiltered || o.mirror.maybeAbsent(s)
		}
	}
	serial := world.SerialOf(object)
	return func(s world.State) bool { return s.Serial == serial }
}

// maybeAbsent says whether s may be absent from a mirror: if it is unwanted, has no key or, in a
// foreign store, cannot be applied.
func (m *Mirror) maybeAbsent(s world.State) bool {
	if m.Setup.Kind == script.KindForeign && s.Present() && m.World.Damage.WasDamaged(s.Serial) {
		return true
	}
	return !s.Shown() && (!s.Present() || s.Unwanted || s.Bad == script.BadKey || m.Setup.Kind == script.KindForeign)
}

func describe(key string, object *world.Object) string {
	if object == nil {
		return key + " absent"
	}
	return key + "@" + object.ResourceVersion + " serial " + strconv.Itoa(world.SerialOf(object))
}

// versions checks that the applied version does not regress without a report (G11).
type versions struct {
	mu   sync.Mutex
	last uint64
	text string
	// descents counts regressions.
	descents int
	synced   bool
}

// check reads the applied version and synced, in this order, and returns the former.
func (v *versions) check(m *Mirror) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	text, synced := m.Applied(), m.Synced()
	if m.Setup.Kind == script.KindOverlap {
		// The last list to commit decides, also about the version: one may have been requested before
		// another writer's Replace, and end after it.
		return text
	}
	number, _ := strconv.ParseUint(text, 10, 64)
	if number < v.last {
		v.descents++
	}
	switch {
	case v.descents > m.regressions():
		m.World.Fail("G11: %s has applied %q, before it had %q, and has regressed %d times with %d reports",
			m.Name, text, v.text,
			v.descents, m.regressions())
	case v.synced && !synced:
		m.World.Fail("G5: %s had synced and has not any more", m.Name)
	case synced && text == "" && m.Applied() == "" && (m.Setup.Kind != script.KindProcess || len(m.List()) > 0):
		// A queue has synced by a list without objects before its consumer has handled the version of
		// that.
		m.World.Fail("G5: %s has synced and no version", m.Name)
	}
	v.last, v.text, v.synced = number, text, synced
	return text
}
