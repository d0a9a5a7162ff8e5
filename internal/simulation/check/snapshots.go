package check

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Snapshots takes and checks snapshots of a mirror's store, between steps of the script and during
// handler calls.
type Snapshots struct {
	// Take is nil for a mirror without snapshots; typed is nil unless it is a typed informer.
	Take  func() cache.Reader[any]
	Typed func() cache.Reader[*world.Object]
	// Version returns the version of the store.
	Version func() string

	calls atomic.Int64

	mu   sync.Mutex
	made int
	kept []keptSnapshot
}

const (
	// Every keepEvery-th snapshot is kept until the end of the run, at most keepMost.
	keepEvery, keepMost = 5, 40
	// callsBetween is the number of handler calls between two snapshots.
	callsBetween = 8
)

// keptSnapshot is a snapshot with its original content.
type keptSnapshot struct {
	// typed is nil, or what counts.
	typed    *cache.Reader[*world.Object]
	snapshot cache.Reader[any]
	said     snapshotContent
}

// snapshotContent is all that a snapshot says.
type snapshotContent struct {
	version string
	objects map[string]*world.Object
	groups  map[string][]string
}

// checkSnapshot takes a snapshot and checks that its objects, its index and its version
// belong together, and that the source was so once (G10).
func (m *Mirror) checkSnapshot() {
	if m.Snapshots.Take == nil {
		return
	}
	synced := m.Synced()
	one := keptSnapshot{snapshot: m.Snapshots.Take()}
	one.said = m.readSnapshot(one)
	m.checkSnapshotContent(one.said, synced)
	m.Snapshots.keep(one)
	if m.Snapshots.Typed == nil {
		return
	}
	typed := m.Snapshots.Typed()
	two := keptSnapshot{typed: &typed}
	two.said = m.readSnapshot(two)
	m.checkSnapshotContent(two.said, synced)
	m.Snapshots.keep(two)
}

// checkSnapshotSometimes is checkSnapshot for callers that are called very often, and while the
// store is being written to.
func (m *Mirror) checkSnapshotSometimes() {
	if m.Snapshots.calls.Add(1)%callsBetween == 0 {
		m.checkSnapshot()
	}
}

// keep retains some of the snapshots.
func (s *Snapshots) keep(k keptSnapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made++; s.made%keepEvery == 0 && len(s.kept) < keepMost {
		s.kept = append(s.kept, k)
	}
}

// checkKeptSnapshots checks that the snapshots which were kept are as they were (G10).
func (m *Mirror) checkKeptSnapshots() {
	m.Snapshots.mu.Lock()
	kept := slices.Clone(m.Snapshots.kept)
	m.Snapshots.mu.Unlock()
	for _, k := range kept {
		now := m.readSnapshot(k)
		isSame := now.version == k.said.version && maps.Equal(now.objects, k.said.objects) &&
			maps.EqualFunc(now.groups, k.said.groups, slices.Equal)
		if !isSame {
			m.World.Fail("G10: a snapshot of %s at version %q had %v and %v, and has at %q %v and %v",
				m.Name,
				k.said.version, spellObjects(k.said.objects), k.said.groups, now.version, spellObjects(now.objects), now.groups)
		}
	}
}

// readSnapshot asks a snapshot for everything. Only its own answers are compared here.
func (m *Mirror) readSnapshot(k keptSnapshot) snapshotContent {
	if k.typed != nil {
		return m.pictureOfTyped(*k.typed)
	}
	s := k.snapshot
	p := snapshotContent{s.ResourceVersion(), map[string]*world.Object{}, map[string][]string{}}
	for key, obj := range s.All() {
		p.objects[key] = AsObject(obj)
		if got, exists := s.Lookup(key); !exists || got != obj {
			m.World.Fail("G10: a snapshot of %s has %s, and does not find it", m.Name, key)
		}
	}
	if n := len(slices.Collect(s.Values())); n != len(p.objects) || n != s.Len() {
		m.World.Fail("G10: a snapshot of %s lists %d objects, says that there are %d, and has %d keys",
			m.Name, n, s.Len(), len(p.objects))
	}
	values, err := s.IndexValues(GroupsIndex)
	for _, group := range values {
		found, failure := s.ByIndex(GroupsIndex, group)
		if failure != nil {
			err = failure
		}
		for _, obj := range found {
			p.groups[group] = append(p.groups[group], world.KeyOf(AsObject(obj)))
		}
		slices.Sort(p.groups[group])
	}
	if err != nil {
		m.World.Fail("G10: a snapshot of %s does not know its index: %v", m.Name, err)
	}
	return p
}

func (m *Mirror) pictureOfTyped(s cache.Reader[*world.Object]) snapshotContent {
	p := snapshotContent{s.ResourceVersion(), maps.Collect(s.All()), map[string][]string{}}
	inNamespaces := 0
	for _, namespace := range script.Namespaces {
		inNamespaces += s.ByNamespace(namespace).Len()
	}
	if inNamespaces != len(p.objects) || s.Len() != inNamespaces {
		m.World.Fail("G10: a snapshot of %s has %d objects in its namespaces, and %d of %d in all",
			m.Name, inNamespaces, len(p.objects), s.Len())
	}
	values, err := s.IndexValues(GroupsIndex)
	for _, group := range values {
		found, failure := s.AllByIndex(GroupsIndex, group)
		if failure != nil {
			err = failure
			continue
		}
		p.groups[group] = slices.Sorted(maps.Keys(maps.Collect(found)))
	}
	if err != nil {
		m.World.Fail("G10: a typed snapshot of %s does not know its index: %v", m.Name, err)
	}
	return p
}

// checkSnapshotContent compares what a snapshot says with itself, and with the source.
func (m *Mirror) checkSnapshotContent(p snapshotContent, synced bool) {
	want := map[string][]string{}
	for key, o := range p.objects {
		for _, group := range world.GroupsOf(o) {
			want[group] = append(want[group], key)
		}
	}
	for _, keys := range want {
		slices.Sort(keys)
	}
	if !maps.EqualFunc(want, p.groups, slices.Equal) {
		m.World.Fail("G10: a snapshot of %s at version %q has the index %v, its objects say %v",
			m.Name, p.version, p.groups, want)
	}
	if !synced || !m.showsPointInTime() {
		return
	}
	if m.Setup.HasNamespaces() {
		for _, namespace := range script.Namespaces {
			m.checkPointInTime(p.objects, namespace+"/", p.version)
		}
		return
	}
	m.checkPointInTime(p.objects, "", p.version)
	m.checkSnapshotVersion(p)
}

// checkSnapshotVersion checks that a snapshot has what the source had at its version: no more, as
// checkPointInTime has checked that it has no less (G10).
func (m *Mirror) checkSnapshotVersion(p snapshotContent) {
	version, err := strconv.ParseUint(p.version, 10, 64)
	if err != nil || m.World.Regressed() || m.World.Proxy.WasEverBehind() {
		return // a list may have been newer than its version
	}
	until := m.World.Truth.Latest(version)
	for key := range m.World.Truth.Now() {
		fits := m.LooksLike(key, p.objects[key])
		spans := m.World.Truth.Spans(key, fits)
		if len(spans) > 0 && spans[0].From > until && !m.World.Regressed() {
			m.World.Fail("G10: a snapshot of %s at version %q has %s, which came later",
				m.Name, p.version, describe(key, p.objects[key]))
		}
	}
}

// compareSnapshot checks that a snapshot is what the store shows while nothing happens (G10).
func (m *Mirror) compareSnapshot(when string, shown map[string]*world.Object) {
	if m.Snapshots.Take == nil {
		return
	}
	p := m.readSnapshot(keptSnapshot{snapshot: m.Snapshots.Take()})
	if version := m.Snapshots.Version(); p.version != version || !maps.Equal(p.objects, shown) {
		m.World.Fail("G10: a snapshot of %s %s is of version %q with %v, the store of %q with %v",
			m.Name, when,
			p.version, spellObjects(p.objects), version, spellObjects(shown))
	}
}

func spellObjects(objects map[string]*world.Object) (texts []string) {
	for _, key := range slices.Sorted(maps.Keys(objects)) {
		texts = append(texts, describe(key, objects[key]))
	}
	return texts
}
