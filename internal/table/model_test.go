package table

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// model is the expected content of a table, in maps.
type model struct {
	objects map[string]any
	// values has the values of each key, by index.
	values []map[string][]string
	label  string
}

func newModel(indexes int) *model {
	m := &model{objects: map[string]any{}}
	m.addIndexes(indexes)
	return m
}

func (m *model) addIndexes(more int) {
	for range more {
		m.values = append(m.values, map[string][]string{})
	}
}

func (m *model) clone() *model {
	c := newModel(len(m.values))
	c.label = m.label
	for key, obj := range m.objects {
		c.objects[key] = obj
		for i := range m.values {
			c.values[i][key] = m.values[i][key]
		}
	}
	return c
}

func (m *model) put(key string, obj any, values [][]string) {
	m.objects[key] = obj
	for i := range values {
		m.values[i][key] = slices.Clone(values[i])
	}
}

func (m *model) remove(key string) {
	delete(m.objects, key)
	for i := range m.values {
		delete(m.values[i], key)
	}
}

// check compares a snapshot with the model, by every way to read it.
func (m *model) check(t *testing.T, s *Snapshot) {
	t.Helper()
	if s.Version != m.label || s.Len() != len(m.objects) {
		t.Fatalf("%q with %d objects, want %q with %d", s.Version, s.Len(), m.label, len(m.objects))
	}
	m.checkEach(t, s)
	m.checkLists(t, s)
	for key, obj := range m.objects {
		e, found := s.Get(KeyOf(key))
		if !found || !same(obj, e.Object()) || !e.Key().Is(key) {
			t.Fatalf("get %.50q: %v", key, found)
		}
	}
	for index := range m.values {
		m.checkIndex(t, s, index)
	}
}

func (m *model) checkEach(t *testing.T, s *Snapshot) {
	t.Helper()
	seen := map[string]bool{}
	s.Each(func(e Entry) bool {
		key := e.Key().String()
		want, exists := m.objects[key]
		if !exists || seen[key] || !same(want, e.Object()) {
			t.Fatalf("each %.50q: exists: %v, twice: %v", key, exists, seen[key])
		}
		seen[key] = true
		return true
	})
	require.Len(t, seen, len(m.objects))
}

func (m *model) checkLists(t *testing.T, s *Snapshot) {
	t.Helper()
	if !slices.Equal(sorted(keysOf(m.objects)), sorted(keysIn(s))) {
		t.Fatal("other keys than the model's")
	}
	var entries []any
	s.EachWithKey(func(key string, e Entry) bool {
		if want, exists := m.objects[key]; !exists || !same(want, e.Object()) {
			t.Fatalf("with key %.50q: %v", key, exists)
		}
		entries = append(entries, e.Object())
		return true
	})
	objects := AppendObjectsOf[any](nil, s)
	if !slices.EqualFunc(entries, objects, same) {
		t.Fatal("Objects and EachWithKey differ")
	}
}

func (m *model) checkIndex(t *testing.T, s *Snapshot, index int) {
	t.Helper()
	want := map[string][]string{}
	for key, values := range m.values[index] {
		for _, value := range values {
			want[value] = append(want[value], key)
		}
	}
	all, count := s.Values(index)
	if got := slices.Collect(all); count != len(want) || !slices.Equal(sorted(keysOf(want)), sorted(got)) {
		t.Fatalf("index %d: %d values, %d met, want %d", index, count, len(got), len(want))
	}
	for value, keys := range want {
		var got []string
		s.Having(index, value, func(e Entry) bool {
			got = append(got, e.Key().String())
			return true
		})
		if len(keys) != s.HavingLen(index, value) || !slices.Equal(sorted(keys), sorted(got)) {
			t.Fatalf("index %d, %q: %d have it, want %d", index, value, len(got), len(keys))
		}
	}
	require.Zero(t, s.HavingLen(index, "what nobody has"))
}

// same is ==, also for the one kind of object here without that operator.
func same(a, b any) bool {
	if m, isMap := a.(map[string]int); isMap {
		other, isMap := b.(map[string]int)
		return isMap && (m == nil) == (other == nil)
	}
	return a == b
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

func keysOf[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	return keys
}

// newTable returns a table with an empty label.
func newTable(indexes int) *Table { return New(indexes, func() string { return "" }) }

func keysIn(s *Snapshot) []string {
	keys := make([]string, 0, s.Len())
	s.EachWithKey(func(key string, _ Entry) bool {
		keys = append(keys, key)
		return true
	})
	return keys
}

func begin(t *Table, changes int) *Table {
	t.Begin(changes)
	return t
}

// find, put and remove are changes of one key. put keeps the origin.
func (t *Table) find(key Key) Slot { return t.Find(key, t.Seek(key)) }

func (t *Table) put(key Key, obj any, values [][]string) (old Slot) {
	old = t.find(key)
	if !slices.ContainsFunc(values, isUnsorted) {
		old.Number = t.Put(key, old, obj, old.Origin, values)
		return old
	}
	inOrder := make([][]string, len(values))
	for i := range values {
		inOrder[i] = slices.Sorted(slices.Values(values[i]))
	}
	old.Number = t.Put(key, old, obj, old.Origin, inOrder)
	return old
}

func isUnsorted(values []string) bool { return !slices.IsSorted(values) }

func (t *Table) remove(key Key) (old Slot) {
	if old = t.find(key); old.Exists {
		t.Remove(old)
	}
	return old
}

// each calls f with each entry of an open write.
func (t *Table) each(f func(number uint32, key Key, obj any)) {
	for number := range t.state.cells {
		if c := t.state.cell(number).content; !c.isFree() {
			f(number, t.state.key(c), t.object(c))
		}
	}
}

// made returns the number of allocated cells.
func (t *Table) made() int { return int(t.state.cells) }

// put is a write with one change.
func put(t *Table, key string, obj any, values ...[]string) {
	w := begin(t, 1)
	w.put(KeyOf(key), obj, values)
	w.Commit(nil)
}

func remove(t *Table, key string) {
	w := begin(t, 1)
	w.remove(KeyOf(key))
	w.Commit(nil)
}

// keepOnly removes the entries that keep returns false for.
func keepOnly(w *Table, keep func(Key) bool) {
	w.each(func(_ uint32, key Key, _ any) {
		if !keep(key) {
			w.remove(key)
		}
	})
}

// many is a number of changes that are not made in place.
const many = InPlace + 1
