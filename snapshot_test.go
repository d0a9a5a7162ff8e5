package cache

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// namesOf are the keys of objects, sorted.
func namesOf(objects []any) []string {
	names := []string{}
	for _, obj := range objects {
		names = append(names, nameOf(obj))
	}
	slices.Sort(names)
	return names
}

// taggedStore has a/1 with the tags x and y, a/2 with x and b/1 without one, at version 7.
func taggedStore(t *testing.T) *cache {
	s := newTagStore()
	require.NoError(t, s.Replace([]any{
		tagged(podAt("a", "1", "1"), "x", "y"), tagged(podAt("a", "2", "2"), "x"), podAt("b", "1", "3"),
	}, "7"))
	return s
}

func TestASnapshotAnswersWhatAStoreAnswers(t *testing.T) {
	s := taggedStore(t)
	snapshot := s.Snapshot()
	assert.Equal(t, "7", snapshot.ResourceVersion())
	assert.Equal(t, 3, snapshot.Len())
	stored, _, _ := s.GetByKey("a/1")
	obj, exists := snapshot.Get("a/1")
	assert.True(t, exists)
	assert.Same(t, stored, obj)
	for _, absent := range []string{"", "1", "a", "a/", "a/3", "/1", "b/2"} {
		obj, exists = snapshot.Get(absent)
		assert.False(t, exists, absent)
		assert.Nil(t, obj, absent)
	}
	assert.ElementsMatch(t, s.List(), snapshot.List())
	assert.ElementsMatch(t, s.List(), slices.Collect(snapshot.Objects()))
	all := maps.Collect(snapshot.All())
	assert.ElementsMatch(t, s.ListKeys(), slices.Collect(maps.Keys(all)))
	for key, obj := range all {
		assert.Equal(t, key, nameOf(obj))
	}
}

func TestASnapshotFindsByIndex(t *testing.T) {
	snapshot := taggedStore(t).Snapshot()
	for value, want := range map[string][]string{"x": {"a/1", "a/2"}, "y": {"a/1"}, "z": {}, "": {}} {
		found, err := snapshot.ByIndex(tagIndex, value)
		require.NoError(t, err)
		assert.Equal(t, want, namesOf(found), value)
		assert.NotNil(t, found)
		all, err := snapshot.AllByIndex(tagIndex, value)
		require.NoError(t, err)
		assert.Equal(t, want, namesOf(slices.Collect(all)), value)
	}
	values, err := snapshot.IndexValues(tagIndex)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"x", "y"}, values)
}

func TestASnapshotSaysWhichIndexIsMissing(t *testing.T) {
	snapshot := taggedStore(t).Snapshot()
	const want = "Index with name colour does not exist"
	_, err := snapshot.ByIndex("colour", "red")
	require.EqualError(t, err, want)
	_, err = snapshot.AllByIndex("colour", "red")
	require.EqualError(t, err, want)
	_, err = snapshot.IndexValues("colour")
	require.EqualError(t, err, want)
}

// Who has seen enough of it is not called again. Fails if the end of a loop ends only the
// part of the store that it was in.
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
		for _, loop := range []func(func(any) bool){snapshot.Objects(), all} {
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

// A snapshot's loop may write: it goes on over what there was.
func TestALoopOverASnapshotMayWriteToItsStore(t *testing.T) {
	s := taggedStore(t)
	seen := 0
	for _, obj := range s.Snapshot().All() {
		require.NoError(t, s.Delete(obj))
		require.NoError(t, s.Add(podAt("c", itoa(seen), "9")))
		seen++
	}
	assert.Equal(t, 3, seen)
	assert.Equal(t, []string{"c/0", "c/1", "c/2"}, namesOf(s.List()))
}

func TestASnapshotIsOfWhatWasWrittenBefore(t *testing.T) {
	s := newTagStore()
	empty := s.Snapshot()
	assert.Zero(t, empty.Len())
	assert.Empty(t, empty.ResourceVersion())
	require.NoError(t, s.Add(podAt("a", "1", "1")))
	one := s.Snapshot()
	s.Bookmark("5")
	require.NoError(t, s.Delete(podAt("a", "1", "1")))
	assert.Zero(t, empty.Len())
	assert.Equal(t, 1, one.Len())
	assert.Empty(t, one.ResourceVersion(), "one object moves no version")
	assert.Equal(t, "5", s.Snapshot().ResourceVersion())
	assert.Zero(t, s.Snapshot().Len())
}

// Fails if a snapshot is of the store as it was before there was such an index.
func TestASnapshotHasTheIndexesOfItsTime(t *testing.T) {
	s := taggedStore(t)
	before := s.Snapshot()
	require.NoError(t, s.AddIndexers(Indexers{NamespaceIndex: MetaNamespaceIndexFunc}))
	after := s.Snapshot()
	_, err := before.ByIndex(NamespaceIndex, "a")
	require.Error(t, err)
	found, err := after.ByIndex(NamespaceIndex, "a")
	require.NoError(t, err)
	assert.Equal(t, []string{"a/1", "a/2"}, namesOf(found))
}

// What cannot be taken changes no snapshot but by the version that it counts for.
func TestASnapshotShowsTheStateBeforeABadOne(t *testing.T) {
	s := taggedStore(t)
	require.Error(t, s.Update(tagged(podAt("a", "1", "8"), "bad")))
	obj, exists := s.Snapshot().Get("a/1")
	require.True(t, exists)
	assert.Equal(t, "1", receivedOf(obj).ResourceVersion)
}

func TestAThreadSafeStoreHasSnapshots(t *testing.T) {
	s := NewThreadSafeStore(Indexers{tagIndex: byTag}, nil)
	s.Replace(map[string]any{"": tagged(pod("a", "1"), "x"), "/": "no object", "a/b/c": 3}, "4")
	snapshot, ok := SnapshotOf(s)
	require.True(t, ok)
	s.Replace(nil, "5")
	assert.Equal(t, "4", snapshot.ResourceVersion())
	all := maps.Collect(snapshot.All())
	assert.Len(t, all, 3)
	assert.Equal(t, "no object", all["/"])
	assert.Equal(t, 3, all["a/b/c"])
	obj, exists := snapshot.Get("")
	assert.True(t, exists)
	assert.Equal(t, all[""], obj)
	found, err := snapshot.ByIndex(tagIndex, "x")
	require.NoError(t, err)
	assert.Equal(t, []any{all[""]}, found)
}

func TestSnapshotOfWhatHasNone(t *testing.T) {
	whole, a, _ := viewsOf()
	_, ok := SnapshotOf(whole)
	assert.True(t, ok)
	for _, other := range []any{nil, 3, a, (*cache)(nil), (*threadSafeMap)(nil), NewDeltaFIFO(MetaNamespaceKeyFunc, nil)} {
		snapshot, ok := SnapshotOf(other)
		assert.False(t, ok, "%T", other)
		assert.Zero(t, snapshot)
	}
}

// Where there are views the version is the lowest of theirs, as the store's is. Fails if a
// view's version is not known to the snapshot, or if a snapshot that was there before is
// handed out with the version of that time.
func TestASnapshotOfAStoreWithViewsHasTheLowestVersion(t *testing.T) {
	whole, a, b := viewsOf()
	require.NoError(t, a.Replace([]any{podAt("a", "1", "8")}, "8"))
	assert.Empty(t, whole.Snapshot().ResourceVersion(), "b has none")
	require.NoError(t, b.Replace([]any{podAt("b", "1", "5")}, "5"))
	assert.Equal(t, "5", whole.Snapshot().ResourceVersion())
	b.Bookmark("9")
	lowest := whole.Snapshot()
	assert.Equal(t, "8", lowest.ResourceVersion())
	assert.Equal(t, 2, lowest.Len())
	applyBatch(a, bg, batch{version: "12"}, false, nil)
	assert.Equal(t, "9", whole.Snapshot().ResourceVersion())
	assert.Equal(t, "8", lowest.ResourceVersion())
}

// A view that nobody has filled makes the store's version one that holds of it, too.
func TestASnapshotKnowsOfAViewThatWasMadeBefore(t *testing.T) {
	whole, a, b := viewsOf()
	require.NoError(t, a.Replace(nil, "8"))
	require.NoError(t, b.Replace(nil, "8"))
	require.Equal(t, "8", whole.Snapshot().ResourceVersion())
	InNamespace(whole, "c")
	assert.Equal(t, whole.LastStoreSyncResourceVersion(), whole.Snapshot().ResourceVersion())
}

// A typed snapshot is a lister that never changes. Fails if one of its methods reads what
// the store holds at the time.
func TestATypedSnapshotStaysAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, tagged(pod("a", "1"), "x"), tagged(pod("a", "2"), "y"), tagged(pod("b", "1"), "x"))
		inf := NewInformerFor(source, InformerConfig[*object]{Indexes: TypedIndexers[*object]{
			tagIndex: func(o *object) ([]string, error) { return byTag(o) },
		}})
		stop := runTyped(t, source, inf)
		snapshot := inf.Lister().Snapshot()
		inNamespace := snapshot.ByNamespace("a")
		again := inNamespace.Snapshot()
		version := source.ResourceVersion()
		_, err := source.Delete("a", "1")
		require.NoError(t, err)
		require.NoError(t, source.Apply(tagged(pod("a", "2"), "x"), tagged(pod("b", "2"), "z"), tagged(pod("a", "3"), "x")))
		synctest.Wait()
		require.Equal(t, 4, inf.Lister().Len())

		assert.Equal(t, version, snapshot.ResourceVersion())
		assert.Equal(t, version, again.ResourceVersion())
		assert.Equal(t, 3, snapshot.Len())
		gone, err := snapshot.Get("a/1")
		require.NoError(t, err)
		assert.Equal(t, "1", gone.Name)
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

		for _, lister := range []TypedSnapshot[*object]{inNamespace, again} {
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

// What does not hold anything yet can be asked all the same.
func TestTheZeroSnapshotIsThatOfAnEmptyStore(t *testing.T) {
	var none Snapshot
	have, err := pictureOf(none)
	require.NoError(t, err)
	assert.Equal(t, picture{objects: map[string]any{}, indexes: map[string]map[string][]string{}}, have)
	_, exists := none.Get("a/1")
	assert.False(t, exists)
	assert.Empty(t, none.List())
	const noIndex = "Index with name tag does not exist"
	_, err = none.ByIndex(tagIndex, "x")
	require.EqualError(t, err, noIndex)
	_, err = none.AllByIndex(tagIndex, "x")
	require.EqualError(t, err, noIndex)
	_, err = none.IndexValues(tagIndex)
	require.EqualError(t, err, noIndex)

	var typed TypedSnapshot[*object]
	for _, s := range []TypedSnapshot[*object]{typed, typed.ByNamespace("a"), typed.Snapshot(), typed.TypedLister.Snapshot(), typed.ByNamespace("a").TypedLister.Snapshot()} {
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
	inf := NewSharedIndexInformer(&ListWatch{}, &object{}, 0, Indexers{tagIndex: byTag})
	require.NoError(t, inf.GetStore().Replace([]any{tagged(podAt("a", "1", "1"), "x")}, "4"))
	for name, shared := range map[string]any{
		"as it is": inf, "typed": NewTypedSharedIndexInformer[*object](inf), "its store": inf.GetStore(),
		"an Informer's": sharedWith(t, podAt("a", "1", "1"), "4"),
	} {
		snapshot, ok := SnapshotOf(shared)
		require.True(t, ok, name)
		assert.Equal(t, "4", snapshot.ResourceVersion(), name)
		assert.Equal(t, 1, snapshot.Len(), name)
	}
	_, reports := NewTypedSharedIndexInformer[*object](inf).(StatusReporter)
	assert.True(t, reports)
}

func sharedWith(t *testing.T, obj *object, version string) SharedIndexInformer {
	inf := NewInformerFor(&ListWatch{}, InformerConfig[*object]{})
	require.NoError(t, inf.Shared().GetStore().Replace([]any{obj}, version))
	return inf.Shared()
}
