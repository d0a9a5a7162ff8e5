package guarantees

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

func TestAStoreHoldsTheNewestStateOfEachKey(t *testing.T) {
	s := cache.NewStore(cache.MetaNamespaceKeyFunc)
	require.NoError(t, s.Add(podAt("a", "1", "1")))
	require.NoError(t, s.Add(podAt("b", "1", "2")))
	second := podAt("a", "1", "3")
	require.NoError(t, s.Update(second))
	assert.Equal(t, map[string]string{"a/1": "3", "b/1": "2"}, contents(s))
	assert.ElementsMatch(t, []string{"a/1", "b/1"}, s.ListKeys())

	got, exists, err := s.Get(pod("a", "1"))
	require.NoError(t, err)
	require.True(t, exists)
	assert.Same(t, second, got)

	require.NoError(t, s.Delete(pod("a", "1")))
	require.NoError(t, s.Delete(pod("a", "1")), "deleting what is not there is no error")
	_, exists, err = s.GetByKey("a/1")
	require.NoError(t, err)
	assert.False(t, exists)
	_, exists, err = s.Get(pod("a", "1"))
	require.NoError(t, err)
	assert.False(t, exists)
	require.NoError(t, s.Resync())
	assert.Equal(t, map[string]string{"b/1": "2"}, contents(s))
}

func TestAStoreWithoutAKeyFunctionPanics(t *testing.T) {
	assert.Panics(t, func() { cache.NewStore(nil) })
	assert.Panics(t, func() { cache.NewIndexer(nil, cache.Indexers{}) })
}

func TestATombstoneIsDeletedIfTheKeyFunctionReadsIt(t *testing.T) {
	s := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
	require.NoError(t, s.Add(pod("a", "1")))
	require.NoError(t, s.Delete(cache.DeletedFinalStateUnknown{Key: "a/1"}))
	assert.Empty(t, s.List())
}

// Common operations do not allocate, since garbage collection is the largest cost of a cache. Fails
// if a key or index value is not shared with the object, or if an iterator's closure escapes.
func TestReadingAndUpdatingAllocateNothing(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector allocates, and has pools forget what they hold")
	}
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	informer := cache.NewTypedInformer[*object](&cache.ListWatch{}, cache.InformerConfig[*object]{})
	for i := range 1000 {
		require.NoError(t, s.Add(podAt("a", itoa(i), "1")))
		require.NoError(t, informer.Shared().GetIndexer().Add(podAt("a", itoa(i), "1")))
	}
	newer, seen := podAt("a", "5", "7"), 0
	for name, act := range map[string]func(){
		"Update":   func() { _ = s.Update(newer) },
		"Get":      func() { _, _, _ = s.Get(newer) },
		"GetByKey": func() { _, _, _ = s.GetByKey("a/5") },
		"absent":   func() { _, _, _ = s.GetByKey("a/none") },
		"Lookup":   func() { informer.Lookup("a/5") },
		"Len":      func() { seen += informer.Len() },
		"Objects": func() {
			for range s.(cache.Snapshotter).Snapshot().Values() {
				seen++
			}
		},
		"Values": func() {
			for range informer.Values() {
				seen++
			}
		},
	} {
		act() // makes the snapshot, which is shared until the next write
		most := 0.0
		if name == "Update" {
			most = 4 // the key, and the values of an index: the function's, and two slices of the store
		} else if name == "Get" {
			most = 1 // the key
		}
		assert.LessOrEqual(t, testing.AllocsPerRun(100, act), most, name)
	}
	assert.Positive(t, seen)
}
