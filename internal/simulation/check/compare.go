package check

import (
	"maps"
	"slices"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Compare checks that all running mirrors equal the source (G1, G6, G7).
func Compare(w *world.World, mirrors []*Mirror, when string) {
	w.Checked()
	now := w.Truth.Now()
	for _, m := range mirrors {
		if !m.Stopped() {
			m.compare(when, now)
		}
	}
}

func (m *Mirror) compare(when string, now map[string]world.State) {
	shown := map[string]*world.Object{}
	for _, obj := range m.List() {
		if o := AsObject(obj); o != nil {
			shown[world.KeyOf(o)] = o
		}
	}
	m.compareContent(when, now, shown)
	m.compareIndex(when, shown)
	m.compareSnapshot(when, shown)
	m.compareHandlers(when, shown)
	if !m.Synced() {
		m.World.Fail("G5: %s has not synced %s", m.Name, when)
	}
	if applied := m.Applied(); applied == "" {
		m.World.Fail("G11: %s has no version %s", m.Name, when)
	}
}

func (m *Mirror) compareContent(when string, now map[string]world.State, shown map[string]*world.Object) {
	held := map[string]bool{}
	for _, q := range m.Status().Quarantined {
		held[q.Key] = true
	}
	for key, s := range now {
		object := shown[key]
		switch {
		case s.Present() && m.cannotApply(s):
			if !held[key] && m.Setup.Kind != script.KindForeign {
				m.World.Fail("G6: %s %s: the source's %s is bad (%s), and not in the status",
					m.Name, when, key, s.Bad)
			}
		case !s.Present() || (s.Unwanted && m.hasTransform()):
			if object != nil {
				m.World.Fail("G7: %s shows %s %s; the source has it no more, or nobody wants it",
					m.Name, describe(key, object), when)
			}
		case object == nil || world.SerialOf(object) != s.Serial:
			m.World.Fail("G1: %s shows %s %s; the source has serial %d at version %d",
				m.Name, describe(key, object), when, s.Serial, s.Version)
		case held[key] && m.Setup.Kind != script.KindProcess: // which may have failed for an earlier state
			m.World.Fail("G6: %s shows %s as it is %s, and holds it in quarantine", m.Name, key, when)
		}
	}
	for key, o := range shown {
		if _, known := now[key]; !known {
			m.World.Fail("G1: %s shows %s %s, which the source never had", m.Name, describe(key, o), when)
		}
	}
}

// cannotApply says whether this mirror cannot apply a state.
func (m *Mirror) cannotApply(s world.State) bool {
	switch s.Bad {
	case "":
		return false
	case script.BadTransform, script.BadTransformPanic:
		return m.hasTransform()
	case script.BadIndex, script.BadIndexPanic:
		return m.ByGroup != nil
	}
	return true
}

func (m *Mirror) compareIndex(when string, shown map[string]*world.Object) {
	if m.ByGroup == nil {
		return
	}
	want := map[string][]string{}
	for key, o := range shown {
		for _, group := range world.GroupsOf(o) {
			want[group] = append(want[group], key)
		}
	}
	for _, group := range []string{"x", "y", "z"} {
		keys, err := m.ByGroup(group)
		slices.Sort(keys)
		slices.Sort(want[group])
		if err != nil || !slices.Equal(keys, want[group]) {
			m.World.Fail("B14: %s %s: the index has under %q %v (%v), the objects say %v",
				m.Name, when, group, keys, err, want[group])
		}
	}
	have := slices.Sorted(slices.Values(m.Groups()))
	wanted := slices.Sorted(maps.Keys(want))
	if !slices.Equal(have, wanted) {
		m.World.Fail("B14: %s %s: the index has the values %v, the objects %v",
			m.Name, when, have, wanted)
	}
}

// compareHandlers checks the state that each handler has replayed.
func (m *Mirror) compareHandlers(when string, shown map[string]*world.Object) {
	for _, h := range m.Handlers {
		view := h.shown()
		for key := range m.World.Truth.Now() {
			stored := shown[key]
			if stored != nil && !h.passes(stored) {
				stored = nil
			}
			if view[key] != stored {
				m.World.Fail("G1: %s has %s %s, its store %s", h.Name,
					describe(key, view[key]), when, describe(key, stored))
			}
		}
		h.compareFiled(when, view)
		if h.Registration != nil && !h.Registration.HasSynced() {
			m.World.Fail("G5: %s has not synced %s", h.Name, when)
		}
	}
	if !m.isInformer() {
		return
	}
	for _, status := range m.Status().Handlers {
		if status.Backlog > 0 || !status.Synced {
			m.World.Fail("G8: %s %s: %+v", m.Name, when, status)
		}
	}
}

// compareSequences checks that handlers that receive all changes received the same ones (G3):
// those that joined before the start and whose backlog cannot have been merged.
func (m *Mirror) compareSequences() {
	if m.Stopped() {
		return // notifications are in progress
	}
	var first *Handler
	for _, h := range m.Handlers {
		isMerged := h.Setup.Delivery == int(cache.Coalesced) || m.Client.Sent() > orderLost
		if h.late || h.Setup.Filter != "" || isMerged {
			continue
		}
		if first == nil {
			first = h
			continue
		}
		if !slices.Equal(first.sequence, h.sequence) {
			m.World.Fail("G3: %s received %v, %s received %v",
				first.Name, first.sequence, h.Name, h.sequence)
		}
	}
}

// CompareAllowed compares the namespaces that are not forbidden.
func (m *Mirror) CompareAllowed() {
	shown := map[string]*world.Object{}
	for _, obj := range m.List() {
		if o := AsObject(obj); o != nil && !m.World.Proxy.IsForbidden(o.Namespace) {
			shown[world.KeyOf(o)] = o
		}
	}
	now := m.World.Truth.Now()
	for key := range now {
		namespace, _ := script.SplitKey(key)
		if m.World.Proxy.IsForbidden(namespace) {
			delete(now, key)
		}
	}
	m.compareContent("beside forbidden namespaces", now, shown)
}
