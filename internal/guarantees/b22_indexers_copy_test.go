package guarantees

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

// B22: changing the map that GetIndexers returned, or that NewIndexer received, does not change the
// store. Fails if either map is not copied.
func TestB22GetIndexersReturnsACopy(t *testing.T) {
	given := cache.Indexers{tagIndex: byTag}
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, given)
	given["smuggled"] = cache.MetaNamespaceIndexFunc
	got := s.GetIndexers()
	assert.Len(t, got, 1)
	delete(got, tagIndex)
	got["smuggled"] = cache.MetaNamespaceIndexFunc
	assert.Contains(t, s.GetIndexers(), tagIndex)
	assert.NotContains(t, s.GetIndexers(), "smuggled")
	require.NoError(t, s.Add(tagged(pod("a", "1"), "x")))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "x"))
	_, err := s.ByIndex("smuggled", "a")
	require.Error(t, err)
}

// keysIn returns the keys of an index value.
func keysIn(t *testing.T, s cache.Indexer, index, value string) []string {
	t.Helper()
	keys, err := s.IndexKeys(index, value)
	require.NoError(t, err)
	objects, err := s.ByIndex(index, value)
	require.NoError(t, err)
	require.Len(t, objects, len(keys))
	assert.NotContains(t, objects, nil)
	return keys
}
