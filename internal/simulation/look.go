package simulation

import (
	"math"
	"strconv"
	"strings"

	"github.com/watchmirror/cache"
)

// look checks all mirrors, in the middle of whatever they are doing.
func (w *world) look() {
	w.checked()
	for _, m := range w.mirrors {
		if m.stopped() {
			continue
		}
		m.lookAtContent()
		m.lookAtSnapshot()
		m.lookAtBacklogs()
		for _, h := range m.handlers {
			h.lookAtSync()
		}
	}
}

// lookAtContent checks what a reader sees: a state of the source as it was at one moment,
// and that not before the one that the applied version names (G2, G7, G11).
func (m *mirror) lookAtContent() {
	claimed := m.version.look(m)
	synced := m.synced()
	shown := map[string]*Object{}
	for _, obj := range m.list() {
		o := asObject(obj)
		if o == nil {
			m.world.fail("%s shows a %T", m.name, obj)
			continue
		}
		if shown[keyOf(o)] != nil {
			m.world.fail("%s shows %s twice", m.name, keyOf(o))
		}
		shown[keyOf(o)] = o
	}
	for key := range m.world.truth.now() {
		m.observer.sees(key, shown[key])
	}
	for key, o := range shown {
		if m.hasTransform() && o.Annotations[transformedMark] != "1" {
			m.world.fail("G14: %s shows %s, transformed %q", m.name, describe(key, o), o.Annotations[transformedMark])
		}
	}
	if !synced || !m.follows() {
		return
	}
	if !m.setup.hasNamespaces() {
		m.lookAtCut(shown, "", claimed)
		return
	}
	// Each namespace has a time of its own, and none is before the version of all.
	for _, namespace := range namespaces {
		m.lookAtCut(shown, namespace+"/", claimed)
	}
}

// lookAtCut looks for the moment at which the source was as the mirror is, as far as the
// keys with a prefix go.
func (m *mirror) lookAtCut(shown map[string]*Object, prefix, claimed string) {
	from := 0
	if version, err := strconv.ParseUint(claimed, 10, 64); err == nil && !m.world.wentBack() {
		from = m.world.truth.since(version)
	}
	moments := []span{{from, math.MaxInt}}
	for key := range m.world.truth.now() {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		next := intersect(moments, m.world.truth.spans(key, m.looks(key, shown[key])))
		if len(next) == 0 {
			m.world.fail("G2, G11: %s at version %q shows %s beside what was not there at that time: %s", m.name, claimed,
				describe(key, shown[key]), m.spell(shown))
			return
		}
		moments = next
	}
}

// looks says which states of the source look like the state shown under a key: those that
// it cannot or will not show, all do.
func (m *mirror) looks(key string, object *Object) func(state) bool {
	return func(s state) bool {
		switch {
		case s.present() && (s.bad != "" || m.hasRefused(s.serial) || m.world.damage.hasStruck(s.serial)):
			return true
		case !s.shown():
			return object == nil || (s.unwanted && !m.hasTransform() && serialOf(object) == s.serial)
		}
		return object != nil && serialOf(object) == s.serial
	}
}

func (m *mirror) spell(shown map[string]*Object) string {
	text := ""
	for key, now := range m.world.truth.now() {
		text += describe(key, shown[key]) + " (the source has serial " + strconv.Itoa(now.serial) + "); "
	}
	return text
}

// lookAtBacklogs checks that what waits for a handler is bounded (G8).
func (m *mirror) lookAtBacklogs() {
	if m.join == nil {
		return
	}
	const keys = 60 // more than there ever are, live or believed to be
	for _, h := range m.status().Handlers {
		limit := 1024 + 2*keys
		switch h.Delivery {
		case cache.Coalesced:
			limit = 2 * keys
		case cache.OrderedUnbounded:
			continue
		}
		if h.Backlog > limit {
			m.world.fail("G8: %d changes wait for %s, at most %d may", h.Backlog, h.Name, limit)
		}
	}
}
