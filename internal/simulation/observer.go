package simulation

import (
	"strconv"
	"sync"
)

// observer sees states of keys one after the other: a store's reader, or a handler. What
// it sees of a key must be a subsequence of what the source had under it (G2), but where
// the mirror has reported that the source itself went back.
type observer struct {
	mirror *mirror
	what   string

	mu sync.Mutex
	// at is how far into the life of each key it has come.
	at map[string]int
	// back counts, for each key, how often it has seen it go back.
	back map[string]int
}

// sees is called with each state seen: nil for none.
func (o *observer) sees(key string, object *Object) {
	fits := o.fits(object)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.at == nil {
		o.at, o.back = map[string]int{}, map[string]int{}
	}
	truth := o.mirror.world.truth
	if found := truth.find(key, o.at[key], fits); found >= 0 {
		o.at[key] = found
		return
	}
	found := truth.find(key, 0, fits)
	switch {
	case found < 0:
		o.mirror.world.fail("G2: %s shows %s, which the source never had", o.what, describe(key, object))
		return
	case o.back[key] >= o.mirror.regressions():
		o.mirror.world.fail("G2: %s regresses to %s, and %d regressions have been reported", o.what,
			describe(key, object), o.mirror.regressions())
	}
	o.back[key]++
	o.at[key] = found
}

// fits says which states of the source may look like object.
func (o *observer) fits(object *Object) func(state) bool {
	if object == nil {
		return o.mirror.maybeAbsent
	}
	serial := serialOf(object)
	return func(s state) bool { return s.serial == serial }
}

// maybeAbsent says whether a mirror may show nothing where the source has s: what is
// not wanted, what has no key, and, for a store that is not ours, what cannot be applied.
func (m *mirror) maybeAbsent(s state) bool {
	if m.setup.Kind == KindForeign && s.present() && m.world.damage.hasStruck(s.serial) {
		return true
	}
	return !s.shown() && (!s.present() || s.unwanted || s.bad == badKey || m.setup.Kind == KindForeign)
}

func describe(key string, object *Object) string {
	if object == nil {
		return key + " absent"
	}
	return key + "@" + object.ResourceVersion + " serial " + strconv.Itoa(serialOf(object))
}

// versions checks that the applied version does not go back without a report (G11).
type versions struct {
	mu   sync.Mutex
	last uint64
	text string
	// descents counts how often it has regressed.
	descents int
	synced   bool
}

// look reads the applied version and synced, in this order, and returns the former.
func (v *versions) look(m *mirror) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	text, synced := m.applied(), m.synced()
	number, _ := strconv.ParseUint(text, 10, 64)
	if number < v.last {
		v.descents++
	}
	switch {
	case v.descents > m.regressions():
		m.world.fail("G11: %s has applied %q, before it had %q, and has regressed %d times with %d reports", m.name, text, v.text,
			v.descents, m.regressions())
	case v.synced && !synced:
		m.world.fail("G5: %s had synced and has not any more", m.name)
	case synced && text == "" && m.applied() == "" && (m.setup.Kind != KindProcess || len(m.list()) > 0):
		// A queue has synced by a list without objects before its consumer has handled the version of that.
		m.world.fail("G5: %s has synced and no version", m.name)
	}
	v.last, v.text, v.synced = number, text, synced
	return text
}
