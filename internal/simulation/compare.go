package simulation

import (
	"maps"
	"slices"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// compare checks that all running mirrors equal the source (G1, G6, G7).
func compare(w *world.World, mirrors []*Mirror, when string) {
	w.Checked()
	now := w.Truth.Now()
	for _, m := range mirrors {
		if !m.stopped() {
			m.compare(when, now)
		}
	}
}

func (m *Mirror) compare(when string, now map[string]world.State) {
	shown := map[string]*world.Object{}
	for _, obj := range m.list() {
		if o := asObject(obj); o != nil {
			shown[world.KeyOf(o)] = o
		}
	}
	m.compareContent(when, now, shown)
	m.compareIndex(when, shown)
	m.compareSnapshot(when, shown)
	m.compareHandlers(when, shown)
	if !m.synced() {
		m.world.Fail("G5: %s has not synced %s", m.name, when)
	}
	if applied := m.applied(); applied == "" {
		m.world.Fail("G11: %s has no version %s", m.name, when)
	}
}

func (m *Mirror) compareContent(when string, now map[string]world.State, shown map[string]*world.Object) {
	held := map[string]bool{}
	for _, q := range m.status().Quarantined {
		held[q.Key] = true
	}
	for key, s := range now {
		object := shown[key]
		switch {
		case s.Present() && m.cannotApply(s):
			if !held[key] && m.setup.Kind != script.KindForeign {
				m.world.Fail("G6: %s %s: the source's %s is bad (%s), and not in the status", m.name, when, key, s.Bad)
			}
		case !s.Present() || (s.Unwanted && m.hasTransform()):
			if object != nil {
				m.world.Fail("G7: %s shows %s %s; the source has it no more, or nobody wants it", m.name, describe(key, object), when)
			}
		case object == nil || world.SerialOf(object) != s.Serial:
			m.world.Fail("G1: %s shows %s %s; the source has serial %d at version %d", m.name, describe(key, object), when, s.Serial, s.Version)
		case held[key] && m.setup.Kind != script.KindProcess: // which may have failed for an earlier state
			m.world.Fail("G6: %s shows %s as it is %s, and holds it in quarantine", m.name, key, when)
		}
	}
	for key, o := range shown {
		if _, known := now[key]; !known {
			m.world.Fail("G1: %s shows %s %s, which the source never had", m.name, describe(key, o), when)
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
		return m.byGroup != nil
	}
	return true
}

func (m *Mirror) compareIndex(when string, shown map[string]*world.Object) {
	if m.byGroup == nil {
		return
	}
	want := map[string][]string{}
	for key, o := range shown {
		for _, group := range world.GroupsOf(o) {
			want[group] = append(want[group], key)
		}
	}
	for _, group := range []string{"x", "y", "z"} {
		keys, err := m.byGroup(group)
		slices.Sort(keys)
		slices.Sort(want[group])
		if err != nil || !slices.Equal(keys, want[group]) {
			m.world.Fail("B14: %s %s: the index has under %q %v (%v), the objects say %v", m.name, when, group, keys, err, want[group])
		}
	}
	if have, wanted := slices.Sorted(slices.Values(m.groups())), slices.Sorted(maps.Keys(want)); !slices.Equal(have, wanted) {
		m.world.Fail("B14: %s %s: the index has the values %v, the objects %v", m.name, when, have, wanted)
	}
}

// compareHandlers checks the state that each handler has replayed.
func (m *Mirror) compareHandlers(when string, shown map[string]*world.Object) {
	for _, h := range m.handlers {
		view := h.shown()
		for key := range m.world.Truth.Now() {
			stored := shown[key]
			if stored != nil && !h.passes(stored) {
				stored = nil
			}
			if view[key] != stored {
				m.world.Fail("G1: %s has %s %s, its store %s", h.name,
					describe(key, view[key]), when, describe(key, stored))
			}
		}
		h.compareFiled(when, view)
		if h.registration != nil && !h.registration.HasSynced() {
			m.world.Fail("G5: %s has not synced %s", h.name, when)
		}
	}
	if !m.isInformer() {
		return
	}
	for _, status := range m.status().Handlers {
		if status.Backlog > 0 || !status.Synced {
			m.world.Fail("G8: %s %s: %+v", m.name, when, status)
		}
	}
}

// compareSequences checks that handlers that receive all changes received the same ones (G3):
// those that joined before the start and whose backlog cannot have been merged.
func (m *Mirror) compareSequences() {
	if m.stopped() {
		return // notifications are in progress
	}
	var first *Handler
	for _, h := range m.handlers {
		isMerged := h.setup.Delivery == int(cache.Coalesced) || m.client.Sent() > orderLost
		if h.late || h.setup.Filter != "" || isMerged {
			continue
		}
		if first == nil {
			first = h
			continue
		}
		if !slices.Equal(first.sequence, h.sequence) {
			m.world.Fail("G3: %s received %v, %s received %v", first.name, first.sequence, h.name, h.sequence)
		}
	}
}

// compareAllowed compares the namespaces that are not forbidden.
func (m *Mirror) compareAllowed() {
	shown := map[string]*world.Object{}
	for _, obj := range m.list() {
		if o := asObject(obj); o != nil && !m.world.Proxy.IsForbidden(o.Namespace) {
			shown[world.KeyOf(o)] = o
		}
	}
	now := m.world.Truth.Now()
	for key := range now {
		namespace, _ := script.SplitKey(key)
		if m.world.Proxy.IsForbidden(namespace) {
			delete(now, key)
		}
	}
	m.compareContent("beside forbidden namespaces", now, shown)
}
