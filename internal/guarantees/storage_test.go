package guarantees

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache"
)

// The body of an ended loop is not called again. Fails if only the current part of the store is skipped.
func TestALoopOverASnapshotMayEndEarly(t *testing.T) {
	s := newTagStore()
	for i := range 1000 {
		require.NoError(t, s.Add(tagged(podAt("a", itoa(i), "1"), "x")))
	}
	snapshot := s.Snapshot()
	all, err := snapshot.AllByIndex(tagIndex, "x")
	require.NoError(t, err)
	for _, enough := range []int{1, 63, 64, 65, 300, 999} {
		met := map[string]bool{}
		for key := range snapshot.All() {
			if met[key] = true; len(met) == enough {
				break
			}
		}
		assert.Len(t, met, enough)
		for _, loop := range []func(func(any) bool){snapshot.Values(), valuesOf(all)} {
			clear(met)
			for obj := range loop {
				if met[nameOf(obj)] = true; len(met) == enough {
					break
				}
			}
			assert.Len(t, met, enough)
		}
	}
}

func TestAThreadSafeStoreHasSnapshots(t *testing.T) {
	s := cache.NewThreadSafeStore(cache.Indexers{tagIndex: byTag}, nil)
	s.Replace(map[string]any{"": tagged(pod("a", "1"), "x"), "/": "no object", "a/b/c": 3}, "4")
	snapshot := s.(cache.Snapshotter).Snapshot()
	s.Replace(nil, "5")
	assert.Equal(t, "4", snapshot.ResourceVersion())
	all := maps.Collect(snapshot.All())
	assert.Len(t, all, 3)
	assert.Equal(t, "no object", all["/"])
	assert.Equal(t, 3, all["a/b/c"])
	obj, exists := snapshot.Lookup("")
	assert.True(t, exists)
	assert.Equal(t, all[""], obj)
	found, err := snapshot.ByIndex(tagIndex, "x")
	require.NoError(t, err)
	assert.Equal(t, []any{all[""]}, found)
}

// An iterator may be kept, like that of All: it must neither show old objects nor keep them in
// memory. Fails if AllByIndex takes its snapshot when it is called.
func TestAnIteratorOverAnIndexReadsWhenItsLoopBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, tagged(pod("a", "1"), "x"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{Indexes: cache.TypedIndexers[*object]{
			tagIndex: func(o *object) ([]string, error) { return byTag(o) },
		}})
		stop := runTyped(t, source, inf)
		defer stop()
		ofTag, err := inf.AllByIndex(tagIndex, "x")
		require.NoError(t, err)
		for _, loop := range []iter.Seq2[string, *object]{inf.All(), ofTag} {
			require.NoError(t, source.Apply(tagged(pod("a", "2"), "x")))
			synctest.Wait()
			keys := []string{}
			for key := range loop {
				keys = append(keys, key)
			}
			assert.ElementsMatch(t, []string{"a/1", "a/2"}, keys)
		}
	})
}

// The version of a store with an empty view accounts for that view.
func TestASnapshotKnowsOfAViewThatWasMadeBefore(t *testing.T) {
	whole, a, b := viewsOf()
	require.NoError(t, a.Replace(nil, "8"))
	require.NoError(t, b.Replace(nil, "8"))
	require.Equal(t, "8", whole.Snapshot().ResourceVersion())
	cache.InNamespace(whole, "c")
	assert.Equal(t, whole.LastStoreSyncResourceVersion(), whole.Snapshot().ResourceVersion())
}

// Fails if a method of a typed snapshot reads the current store.
func TestATypedSnapshotNeverChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, tagged(pod("a", "1"), "x"), tagged(pod("a", "2"), "y"), tagged(pod("b", "1"), "x"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{Indexes: cache.TypedIndexers[*object]{
			tagIndex: func(o *object) ([]string, error) { return byTag(o) },
		}})
		stop := runTyped(t, source, inf)
		snapshot := inf.Reader.Snapshot()
		inNamespace := snapshot.ByNamespace("a")
		again := inNamespace.Snapshot()
		version := source.ResourceVersion()
		_, err := source.Delete("a", "1")
		require.NoError(t, err)
		require.NoError(t, source.Apply(tagged(pod("a", "2"), "x"), tagged(pod("b", "2"), "z"), tagged(pod("a", "3"), "x")))
		synctest.Wait()
		require.Equal(t, 4, inf.Reader.Len())

		assert.Equal(t, version, snapshot.ResourceVersion())
		assert.Equal(t, version, again.ResourceVersion())
		assert.Equal(t, 3, snapshot.Len())
		deleted, err := snapshot.Get("a/1")
		require.NoError(t, err)
		assert.Equal(t, "1", deleted.Name)
		_, err = snapshot.Get("a/3")
		assert.True(t, apierrors.IsNotFound(err))
		all, err := snapshot.List(nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"a/1", "a/2", "b/1"}, sortedNames(all))
		assert.Equal(t, []string{"a/1", "a/2", "b/1"}, sortedNames(slices.Collect(snapshot.Values())))
		assert.ElementsMatch(t, []string{"a/1", "a/2", "b/1"}, slices.Collect(maps.Keys(maps.Collect(snapshot.All()))))
		tagged, err := snapshot.ByIndex(tagIndex, "x")
		require.NoError(t, err)
		assert.Equal(t, []string{"a/1", "b/1"}, sortedNames(tagged))
		values, err := snapshot.IndexValues(tagIndex)
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"x", "y"}, values)

		for _, lister := range []cache.Reader[*object]{inNamespace, again} {
			assert.Equal(t, 2, lister.Len())
			_, exists := lister.Lookup("1")
			assert.True(t, exists)
			ofTag, err := lister.AllByIndex(tagIndex, "x")
			require.NoError(t, err)
			assert.Equal(t, []string{"a/1"}, slices.Collect(maps.Keys(maps.Collect(ofTag))))
		}
		stop()
	})
}

// The zero snapshot can be read.
func TestTheZeroSnapshotIsThatOfAnEmptyStore(t *testing.T) {
	var none cache.Reader[any]
	have, err := snapshotContentOf(none)
	require.NoError(t, err)
	assert.Equal(t, snapshotContent{objects: map[string]any{}, indexes: map[string]map[string][]string{}}, have)
	_, exists := none.Lookup("a/1")
	assert.False(t, exists)
	list, err := none.List(nil)
	require.NoError(t, err)
	assert.Empty(t, list)
	const noIndex = "Index with name tag does not exist"
	_, err = none.ByIndex(tagIndex, "x")
	require.EqualError(t, err, noIndex)
	_, err = none.AllByIndex(tagIndex, "x")
	require.EqualError(t, err, noIndex)
	_, err = none.IndexValues(tagIndex)
	require.EqualError(t, err, noIndex)

	var typed cache.Reader[*object]
	for _, s := range []cache.Reader[*object]{typed, typed.ByNamespace("a"), typed.Snapshot(), typed.ByNamespace("a").Snapshot()} {
		assert.Empty(t, s.ResourceVersion())
		assert.Zero(t, s.Len())
		_, exists := s.Lookup("1")
		assert.False(t, exists)
		_, err := s.Get("1")
		assert.True(t, apierrors.IsNotFound(err))
		list, err := s.List(nil)
		require.NoError(t, err)
		assert.Empty(t, list)
		assert.Empty(t, maps.Collect(s.All()))
		assert.Empty(t, slices.Collect(s.Values()))
		_, err = s.ByIndex(tagIndex, "x")
		require.EqualError(t, err, noIndex)
		_, err = s.AllByIndex(tagIndex, "x")
		require.EqualError(t, err, noIndex)
		_, err = s.IndexValues(tagIndex)
		require.EqualError(t, err, noIndex)
	}
}

// Fails if an informer, or one that is typed, has to be asked for its store first.
func TestAnInformerHasSnapshots(t *testing.T) {
	inf := cache.NewSharedIndexInformer(&cache.ListWatch{}, &object{}, 0, cache.Indexers{tagIndex: byTag})
	require.NoError(t, inf.GetStore().Replace([]any{tagged(podAt("a", "1", "1"), "x")}, "4"))
	for name, shared := range map[string]any{
		"as it is": inf, "typed": cache.NewTypedSharedIndexInformer[*object](inf), "its store": inf.GetStore(),
		"an Informer's": newSharedInformerWith(t, podAt("a", "1", "1"), "4"),
	} {
		snapshot := shared.(cache.Snapshotter).Snapshot()
		assert.Equal(t, "4", snapshot.ResourceVersion(), name)
		assert.Equal(t, 1, snapshot.Len(), name)
	}
	_, reports := cache.NewTypedSharedIndexInformer[*object](inf).(cache.StatusReporter)
	assert.True(t, reports)
}

func newSharedInformerWith(t *testing.T, obj *object, version string) cache.SharedIndexInformer {
	inf := cache.NewTypedInformer(&cache.ListWatch{}, cache.InformerConfig[*object]{})
	require.NoError(t, inf.Shared().GetStore().Replace([]any{obj}, version))
	return inf.Shared()
}

// valuesOf returns the second values of pairs.
func valuesOf[K, V any](pairs iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, value := range pairs {
			if !yield(value) {
				return
			}
		}
	}
}

// snapshotContent is the content of a snapshot, read by independent methods.
type snapshotContent struct {
	version string
	objects map[string]any
	// indexes has the sorted keys of each value of each index.
	indexes map[string]map[string][]string
}

// snapshotContentOf reads all of a snapshot, and returns an error if two methods disagree.
func snapshotContentOf(s cache.Reader[any], indexes ...string) (snapshotContent, error) {
	p := snapshotContent{version: s.ResourceVersion(), objects: map[string]any{}, indexes: map[string]map[string][]string{}}
	for key, obj := range s.All() {
		p.objects[key] = obj
		if got, exists := s.Lookup(key); !exists || got != obj {
			return p, fmt.Errorf("Lookup(%q) is %v, All has %v", key, got, obj)
		}
	}
	listed, err := s.List(nil)
	if err != nil {
		return p, err
	}
	if len(listed) != len(p.objects) || s.Len() != len(listed) || len(slices.Collect(s.Values())) != len(listed) {
		return p, fmt.Errorf("List has %d objects, Len says %d, All has %d", len(listed), s.Len(), len(p.objects))
	}
	for _, obj := range listed {
		if p.objects[nameOf(obj)] != obj {
			return p, fmt.Errorf("List has %s as All has not", nameOf(obj))
		}
	}
	for _, index := range indexes {
		var err error
		if p.indexes[index], err = indexContentOf(s, index); err != nil {
			return p, err
		}
	}
	return p, nil
}

func indexContentOf(s cache.Reader[any], index string) (map[string][]string, error) {
	keys := map[string][]string{}
	values, err := s.IndexValues(index)
	for _, value := range values {
		objects, byErr := s.ByIndex(index, value)
		all, allErr := s.AllByIndex(index, value)
		if err := errors.Join(byErr, allErr); err != nil {
			return nil, err
		}
		if again := slices.Collect(valuesOf(all)); !slices.Equal(objects, again) {
			return nil, fmt.Errorf("index %q, %q: ByIndex has %d objects, AllByIndex %d", index, value, len(objects), len(again))
		}
		for _, obj := range objects {
			key := nameOf(obj)
			if stored, _ := s.Lookup(key); stored != obj {
				return nil, fmt.Errorf("index %q has another %s under %q than there is", index, key, value)
			}
			keys[value] = append(keys[value], key)
		}
		slices.Sort(keys[value])
	}
	return keys, err
}

func TestAThreadSafeStoreAcceptsAnyKey(t *testing.T) {
	s := newTagMap()
	for _, key := range []string{"", "a/b/c", "x"} {
		obj := tagged(pod("a", "1"), "v")
		s.Add(key, obj)
		got, exists := s.Get(key)
		require.True(t, exists)
		assert.Same(t, obj, got)
	}
	keys, err := s.IndexKeys(tagIndex, "v")
	require.NoError(t, err)
	assert.Equal(t, []string{"", "a/b/c", "x"}, keys, "sorted")
	s.Delete("")
	s.DeleteWithObject("x", podAt("a", "1", "9"))
	s.Delete("absent")
	assert.Equal(t, []string{"a/b/c"}, s.ListKeys())
	assert.Len(t, s.List(), 1)
	_, exists := s.Get("x")
	assert.False(t, exists)
	assert.Empty(t, s.LastStoreSyncResourceVersion(), "one object does not move the version")
	require.NoError(t, s.Resync())
}

func TestReplaceOfAThreadSafeStoreKeepsNoAliasOfTheMap(t *testing.T) {
	s := newTagMap()
	s.Add("old", tagged(pod("a", "old"), "x"))
	items := map[string]any{"1": tagged(pod("a", "1"), "x", "y"), "2": pod("a", "2")}
	s.Replace(items, "7")
	delete(items, "1")
	items["3"] = nil
	assert.ElementsMatch(t, []string{"1", "2"}, s.ListKeys())
	assert.Equal(t, "7", s.LastStoreSyncResourceVersion())
	keys, err := s.IndexKeys(tagIndex, "x")
	require.NoError(t, err)
	assert.Equal(t, []string{"1"}, keys)
	s.Bookmark("8")
	assert.Equal(t, "8", s.LastStoreSyncResourceVersion())
}

func TestAnIndexWithoutAFunctionPanics(t *testing.T) {
	assert.PanicsWithValue(t, `cache: index "x" has no function`, func() {
		cache.NewThreadSafeStore(cache.Indexers{"x": nil}, nil)
	})
	assert.Panics(t, func() { cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"x": nil}) })
}
