package cache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newTagMap() ThreadSafeStore {
	return NewThreadSafeStore(Indexers{tagIndex: byTag}, Indices{})
}

func TestAThreadSafeStoreTakesAnyKey(t *testing.T) {
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

func TestAnIndexWithoutAFunctionIsAProgrammersError(t *testing.T) {
	assert.PanicsWithValue(t, `cache: NewThreadSafeStore: index "x" has no function`, func() {
		NewThreadSafeStore(Indexers{"x": nil}, nil)
	})
	assert.Panics(t, func() { NewIndexer(MetaNamespaceKeyFunc, Indexers{"x": nil}) })
}

func TestOptionsOfAThreadSafeStoreAreCalled(t *testing.T) {
	var given *threadSafeMap
	s := NewThreadSafeStore(nil, nil, func(m *threadSafeMap) { given = m })
	assert.Same(t, given, s)
}

// The maps are made anew once most of what they held has gone. Fails if remove is
// not followed by shrink.
func TestMemoryIsGivenBackAfterABurst(t *testing.T) {
	const burst = 5000
	drains := map[string]func(s *cache){
		"one by one": func(s *cache) {
			for i := 3; i < burst; i++ {
				require.NoError(t, s.Delete(pod("a", itoa(i))))
			}
		},
		"by a list": func(s *cache) {
			var list []any
			for i := range 3 {
				list = append(list, tagged(pod("a", itoa(i)), "all", itoa(i)))
			}
			require.NoError(t, s.Replace(list, "1"))
		},
	}
	for name, drain := range drains {
		s := newTagStore()
		for i := range burst {
			require.NoError(t, s.Add(tagged(pod("a", itoa(i)), "all", itoa(i))))
		}
		assert.GreaterOrEqual(t, s.storage.table.Cells(), burst)
		drain(s)
		assert.LessOrEqual(t, s.storage.table.Cells(), 1024, name)
		assert.Equal(t, map[string]string{"a/0": "", "a/1": "", "a/2": ""}, contents(s))
		assert.Equal(t, []string{"a/0", "a/1", "a/2"}, keysIn(t, s, tagIndex, "all"))
		assert.Equal(t, []string{"a/2"}, keysIn(t, s, tagIndex, "2"))
		assert.Empty(t, keysIn(t, s, tagIndex, "4000"))
	}
}

func ExampleNewThreadSafeStore() {
	s := NewThreadSafeStore(Indexers{"length": func(obj any) ([]string, error) {
		return []string{fmt.Sprint(len(obj.(string)))}, nil
	}}, Indices{})
	s.Add("greeting", "hello")
	s.Add("answer", "world")
	keys, _ := s.IndexKeys("length", "5")
	fmt.Println(keys)
	// Output: [answer greeting]
}
