package check

import (
	"strconv"
	"strings"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Now checks all mirrors, whatever they are doing.
func Now(w *world.World, mirrors []*Mirror) {
	w.Checked()
	for _, m := range mirrors {
		if m.Stopped() {
			continue
		}
		m.checkContent()
		m.checkSnapshot()
		m.checkBacklogs()
		for _, h := range m.Handlers {
			h.checkSync()
		}
	}
}

// checkContent checks that readers see the source at one moment, not before the moment of the
// applied version (G2, G7, G11).
func (m *Mirror) checkContent() {
	claimed := m.version.check(m)
	synced := m.Synced()
	shown := map[string]*world.Object{}
	for _, obj := range m.List() {
		o := AsObject(obj)
		if o == nil {
			m.World.Fail("%s shows a %T", m.Name, obj)
			continue
		}
		if shown[world.KeyOf(o)] != nil {
			m.World.Fail("%s shows %s twice", m.Name, world.KeyOf(o))
		}
		shown[world.KeyOf(o)] = o
	}
	for key := range m.World.Truth.Now() {
		m.observer.observe(key, shown[key])
	}
	for key, o := range shown {
		if m.hasTransform() && o.Annotations[world.TransformedMark] != "1" {
			m.World.Fail("G14: %s shows %s, transformed %q",
				m.Name, describe(key, o), o.Annotations[world.TransformedMark])
		}
	}
	if !synced || !m.showsPointInTime() {
		return
	}
	if !m.Setup.HasNamespaces() {
		m.checkPointInTime(shown, "", claimed)
		return
	}
	// Each namespace has its own moment, not before the store's version.
	for _, namespace := range script.Namespaces {
		m.checkPointInTime(shown, namespace+"/", claimed)
	}
}

// checkPointInTime searches for a moment at which the source equals the mirror, for keys with a
// prefix.
func (m *Mirror) checkPointInTime(shown map[string]*world.Object, prefix, claimed string) {
	from := 0
	if version, err := strconv.ParseUint(claimed, 10, 64); err == nil && !m.World.Regressed() {
		from = m.World.Truth.Since(version)
	}
	moments := world.SpansFrom(from)
	for key := range m.World.Truth.Now() {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		next := world.Intersect(moments, m.World.Truth.Spans(key, m.LooksLike(key, shown[key])))
		if len(next) == 0 {
			m.World.Fail("G2, G11: %s at version %q shows %s beside what was not there at that time: %s",
				m.Name, claimed,
				describe(key, shown[key]), m.spell(shown))
			return
		}
		moments = next
	}
}

// LooksLike returns a function that says whether a state of the source may be shown as object.
// States that the mirror cannot or does not show match any object.
func (m *Mirror) LooksLike(key string, object *world.Object) func(world.State) bool {
	return func(s world.State) bool {
		switch {
		case s.Present() && (s.Bad != "" || m.HasRefused(s.Serial) || m.World.Damage.WasDamaged(s.Serial)):
			return true
		case object != nil && s.Unwanted && m.World.Proxy.WasEverBehind():
			// A list behind its items has dropped the key, and the watch replays states of it.
			return world.SerialOf(object) <= s.Serial
		case !s.Shown():
			return object == nil || (s.Unwanted && !m.hasTransform() && world.SerialOf(object) == s.Serial)
		}
		return object != nil && world.SerialOf(object) == s.Serial
	}
}

func (m *Mirror) spell(shown map[string]*world.Object) string {
	text := ""
	for key, now := range m.World.Truth.Now() {
		text += describe(key, shown[key]) + " (the source has serial " + strconv.Itoa(now.Serial) + "); "
	}
	return text
}

// checkBacklogs checks that the backlog of each handler is bounded (G8).
func (m *Mirror) checkBacklogs() {
	if !m.isInformer() {
		return
	}
	const keys = 60 // more than there ever are, live or believed to be
	for _, h := range m.Status().Handlers {
		limit := 1024 + 2*keys
		switch h.Delivery {
		case cache.Coalesced:
			limit = 2 * keys
		case cache.OrderedUnbounded:
			continue
		}
		if h.Backlog > limit {
			m.World.Fail("G8: %d changes wait for %s, at most %d may", h.Backlog, h.Name, limit)
		}
	}
}
