package cache

import (
	"fmt"
	"maps"
	"slices"
)

// indexerSet is the index functions of a store at one moment, in a fixed order:
// an index keeps its position for good. A set never changes, so its address says
// which functions a value was computed for.
type indexerSet struct {
	names     []string
	functions []IndexFunc
	positions map[string]int
	// builds are the indexes that are being added. Who writes while a build
	// runs computes their values as well, so that a build needs a single pass
	// however fast others write.
	builds []*indexBuild
}

func newIndexerSet(indexers Indexers) *indexerSet {
	return (&indexerSet{}).with(indexers, nil)
}

// with returns a set that has more indexes, at the end, and these builds.
func (s *indexerSet) with(indexers Indexers, builds []*indexBuild) *indexerSet {
	grown := &indexerSet{
		names:     slices.Clone(s.names),
		functions: slices.Clone(s.functions),
		positions: map[string]int{},
		builds:    builds,
	}
	// The order within one call is the names', so that of two functions that
	// fail for an object it is always the same one that is named.
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		grown.names = append(grown.names, name)
		grown.functions = append(grown.functions, indexers[name])
	}
	for i, name := range grown.names {
		grown.positions[name] = i
	}
	return grown
}

// conflict fails if a name is taken.
func (s *indexerSet) conflict(indexers Indexers) error {
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		if _, taken := s.positions[name]; taken {
			return fmt.Errorf("index %q exists already: use it, or choose another name", name)
		}
	}
	return nil
}

// position returns where the named index is.
func (s *indexerSet) position(name string) (int, error) {
	at, ok := s.positions[name]
	if !ok {
		return 0, fmt.Errorf("index %q does not exist; there are %q", name, slices.Sorted(slices.Values(s.names)))
	}
	return at, nil
}

// indexers returns the functions by name.
func (s *indexerSet) indexers() Indexers {
	all := make(Indexers, len(s.names))
	for i, name := range s.names {
		all[name] = s.functions[i]
	}
	return all
}

// distinctValues calls an index function and returns its values sorted, each
// once, in a slice that the function cannot reach.
func distinctValues(function IndexFunc, obj any) ([]string, error) {
	values, err := indexValues(function, obj)
	if err != nil || len(values) == 0 {
		return nil, err
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Clip(slices.Compact(values)), nil
}

// valuesFrom appends to values, which are those for the first len(values)
// functions, those for the rest.
func (s *indexerSet) valuesFrom(values [][]string, obj any) ([][]string, error) {
	if values == nil {
		values = make([][]string, 0, len(s.functions))
	}
	for i := len(values); i < len(s.functions); i++ {
		more, err := distinctValues(s.functions[i], obj)
		if err != nil {
			return nil, fmt.Errorf("index %q: %w", s.names[i], err)
		}
		values = append(values, more)
	}
	return values, nil
}

// indexBuild is indexes on their way into a store that may be filled.
type indexBuild struct {
	set *indexerSet
	// written is what writers computed since the build began, by key. The
	// store's lock guards it.
	written map[string]built
}

// built is an entry's values for the indexes of a build. err is kept with it: it
// counts only if that entry is still there when the build ends.
type built struct {
	entry  *entry
	values [][]string
	err    error
}

func newIndexBuild(indexers Indexers) *indexBuild {
	return &indexBuild{set: newIndexerSet(indexers), written: map[string]built{}}
}

func (b *indexBuild) compute(e *entry) built {
	values, err := b.set.valuesFrom(nil, e.obj)
	return built{entry: e, values: values, err: err}
}

// addIndexers builds in one pass: it makes itself known to the writers, computes
// the values of everything that is there, and adds what writers computed since.
func (m *threadSafeMap) addIndexers(indexers Indexers) error {
	for name, function := range indexers {
		if function == nil {
			return fmt.Errorf("index %q has no function: it is nil", name)
		}
	}
	build := newIndexBuild(indexers)
	if err := m.beginBuild(build); err != nil {
		return err
	}
	mine := map[string]built{}
	for _, e := range m.snapshot() {
		result := build.compute(e)
		if result.err != nil && m.holds(e) {
			m.endBuild(build)
			return buildError(e.key, result.err)
		}
		mine[e.key] = result
	}
	return m.commitBuild(build, mine)
}

func buildError(key string, err error) error {
	return fmt.Errorf("no index was added, because of object %q: %w", key, err)
}

func (m *threadSafeMap) beginBuild(build *indexBuild) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	set := m.indexers.Load()
	if err := set.conflict(build.set.indexers()); err != nil {
		return err
	}
	m.indexers.Store(set.with(nil, append(slices.Clone(set.builds), build)))
	return nil
}

func (m *threadSafeMap) endBuild(build *indexBuild) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endBuildLocked(build, nil)
}

// endBuildLocked forgets a build, whose indexes are there now if it says so.
func (m *threadSafeMap) endBuildLocked(build *indexBuild, done Indexers) {
	set := m.indexers.Load()
	others := slices.DeleteFunc(slices.Clone(set.builds), func(b *indexBuild) bool { return b == build })
	m.indexers.Store(set.with(done, others))
}

// commitBuild makes the indexes visible, or leaves everything as it is.
func (m *threadSafeMap) commitBuild(build *indexBuild, mine map[string]built) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	indexers := build.set.indexers()
	// Of two builds that want one name, the first to get here has it.
	if err := m.indexers.Load().conflict(indexers); err != nil {
		m.endBuildLocked(build, nil)
		return err
	}
	for key, e := range m.table.entries {
		if result := build.resultFor(e, mine); result.err != nil {
			m.endBuildLocked(build, nil)
			return buildError(key, result.err)
		}
	}
	for range indexers {
		m.table.indices = append(m.table.indices, index{})
	}
	for _, e := range m.table.entries {
		m.table.extend(e, build.resultFor(e, mine).values)
	}
	m.endBuildLocked(build, indexers)
	return nil
}

// resultFor returns what was computed for an entry: by a writer, or else by the
// build itself, because the entry is older.
func (b *indexBuild) resultFor(e *entry, mine map[string]built) built {
	if result := b.written[e.key]; result.entry == e {
		return result
	}
	return mine[e.key]
}
