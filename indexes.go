package cache

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/table"
)

// indexerSet is the index functions of a store at one moment, in a fixed order:
// an index keeps its position for good. A set never changes, so its address says
// which functions a value was computed for.
type indexerSet struct {
	names     []string
	functions []IndexFunc
	// byNamespace says of each whether it is our index function by namespace.
	byNamespace []bool
	positions   map[string]int
	// builds are the indexes that are being added. Who writes while a build
	// runs computes their values as well, so that a build needs a single pass
	// however fast others write.
	builds []*indexBuild
}

// isEmpty says whether there are no indexes, nor any that are being added.
func (s *indexerSet) isEmpty() bool { return len(s.functions) == 0 && len(s.builds) == 0 }

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
		grown.byNamespace = append(grown.byNamespace, sameFunction(grown.functions[i], MetaNamespaceIndexFunc))
	}
	return grown
}

// conflict fails if names are taken. Its text, and that of position, is client-go's, which
// programs compare.
func (s *indexerSet) conflict(indexers Indexers) error {
	taken := sets.Set[string]{}
	for name := range indexers {
		if _, exists := s.positions[name]; exists {
			taken.Insert(name)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	return fmt.Errorf("indexer conflict: %v", taken)
}

// position returns where the named index is.
func (s *indexerSet) position(name string) (int, error) {
	at, ok := s.positions[name]
	if !ok {
		return 0, fmt.Errorf("Index with name %s does not exist", name)
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

// valueRoom is room for the index values of as many changes as are made together, used again and
// again: a table keeps none. The zero value is none, and changes get room of their own.
type valueRoom struct {
	texts  []string
	slices [][]string
	each   int
}

func newValueRoom(changes, indexes int) valueRoom {
	r := valueRoom{texts: make([]string, changes*indexes), slices: make([][]string, changes*indexes), each: indexes}
	r.clear()
	return r
}

// of is that of one of the changes, empty.
func (r valueRoom) of(i int) [][]string {
	if r.each == 0 {
		return nil
	}
	return r.slices[i*r.each : i*r.each : (i+1)*r.each]
}

// clear forgets all values.
func (r valueRoom) clear() {
	clear(r.texts)
	for i := range r.slices {
		r.slices[i] = r.texts[i : i : i+1]
	}
}

// distinctValues calls an index function and returns its values sorted, each
// once, in a slice that the function cannot reach: into, if that is long enough.
func (s *indexerSet) distinctValues(at int, obj any, into []string) ([]string, error) {
	if s.byNamespace[at] {
		// Ours makes a slice each time, which is all that it would cost.
		if object, ok := obj.(metav1.Object); ok && !isNilPointer(obj) {
			return namespaceOf(object, into[:0])
		}
	}
	values, err := indexValues(s.functions[at], obj)
	if err != nil || len(values) == 0 {
		return into[:0], err
	}
	values = append(into[:0], values...)
	if len(values) == 1 {
		return values, nil
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}

// namespaceOf appends an object's namespace.
func namespaceOf(object metav1.Object, into []string) (values []string, err error) {
	defer caught("index function", &err)
	return append(into, object.GetNamespace()), nil
}

// valuesFrom appends to values, which are those for the first len(values)
// functions, those for the rest. Slices that values has room for are used again. says is what
// obj says of itself, nil if it has not been asked.
func (s *indexerSet) valuesFrom(values [][]string, obj any, says *metadata) ([][]string, error) {
	if values == nil {
		values = make([][]string, 0, len(s.functions))
	}
	for i := len(values); i < len(s.functions); i++ {
		var into []string
		if i < cap(values) {
			into = values[:i+1][i]
		}
		if s.byNamespace[i] && says != nil && says.readable {
			values = append(values, append(into[:0], says.namespace))
			continue
		}
		more, err := s.distinctValues(i, obj, into)
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
	// written is what writers computed since the build began, by key. Who holds the
	// store's writing has it.
	written map[table.Key]built
}

// built is an object's values for the indexes of a build. err is kept with it: it counts
// only as long as that object is there, be that while the build goes through the store or
// when it ends.
type built struct {
	values [][]string
	err    error
}

func newIndexBuild(indexers Indexers) *indexBuild {
	return &indexBuild{set: newIndexerSet(indexers), written: map[table.Key]built{}}
}

func (b *indexBuild) compute(obj any) built {
	values, err := b.set.valuesFrom(nil, obj, nil)
	return built{values: values, err: err}
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
	before, err := m.beginBuild(build)
	if err != nil {
		return err
	}
	mine := map[table.Key]built{}
	for e := range before.Each {
		result, key := build.compute(e.Object()), e.Key()
		if result.err != nil && m.isThere(e) {
			m.endBuild(build)
			return buildError(key.String(), result.err)
		}
		mine[key] = result
	}
	return m.commitBuild(build, mine)
}

// isThere says whether an entry of a snapshot is what the table still has.
func (m *threadSafeMap) isThere(e table.Entry) bool {
	found, exists := m.table.Get(e.Key())
	return exists && table.Same(found.Object, e.Object())
}

func buildError(key string, err error) error {
	return fmt.Errorf("no index was added, because of object %q: %w", key, err)
}

// beginBuild returns what there is that no writer computes values for.
func (m *threadSafeMap) beginBuild(build *indexBuild) (*table.Snapshot, error) {
	m.writing.Lock()
	defer m.writing.Unlock()
	set := m.indexers.Load()
	if err := set.conflict(build.set.indexers()); err != nil {
		return nil, err
	}
	m.indexers.Store(set.with(nil, append(slices.Clone(set.builds), build)))
	return m.table.Snapshot(), nil
}

func (m *threadSafeMap) endBuild(build *indexBuild) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.forgetBuild(build, nil)
}

// forgetBuild forgets a build, whose indexes are there now if it says so. The caller holds
// writing.
func (m *threadSafeMap) forgetBuild(build *indexBuild, done Indexers) {
	set := m.indexers.Load()
	others := slices.DeleteFunc(slices.Clone(set.builds), func(b *indexBuild) bool { return b == build })
	m.indexers.Store(set.with(done, others))
}

// commitBuild makes the indexes visible, or leaves everything as it is.
func (m *threadSafeMap) commitBuild(build *indexBuild, mine map[table.Key]built) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	indexers := build.set.indexers()
	// Of two builds that want one name, the first to get here has it.
	err := m.indexers.Load().conflict(indexers)
	if err == nil {
		err = build.failure(m.table.Snapshot(), mine)
	}
	if err != nil {
		m.forgetBuild(build, nil)
		return err
	}
	first := len(m.indexers.Load().names)
	w := m.table.Begin(wholeStore)
	w.AddIndexes(len(indexers))
	w.Each(func(number uint32, key table.Key, _ table.Found) {
		for i, values := range build.resultFor(key, mine).values {
			w.Index(first+i, number, values)
		}
	})
	w.Commit(nil)
	m.forgetBuild(build, indexers)
	return nil
}

// failure is why the indexes cannot be added: the function of one has failed for an object.
func (b *indexBuild) failure(all *table.Snapshot, mine map[table.Key]built) error {
	for e := range all.Each {
		key := e.Key()
		if result := b.resultFor(key, mine); result.err != nil {
			return buildError(key.String(), result.err)
		}
	}
	return nil
}

// resultFor returns what was computed for the object under a key: by a writer, or else by
// the build itself, because the object is older.
func (b *indexBuild) resultFor(key table.Key, mine map[table.Key]built) built {
	if result, since := b.written[key]; since {
		return result
	}
	return mine[key]
}
