package guarantees

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

func TestAnIndexFindsObjectsByEachOfTheirValues(t *testing.T) {
	s := newTagStore()
	require.NoError(t, s.Add(tagged(pod("a", "1"), "x", "y", "x")))
	require.NoError(t, s.Add(tagged(pod("a", "2"), "y", "")))
	require.NoError(t, s.Add(pod("a", "3")))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "x"))
	assert.Equal(t, []string{"a/1", "a/2"}, keysIn(t, s, tagIndex, "y"))
	assert.Equal(t, []string{"a/2"}, keysIn(t, s, tagIndex, ""), "an empty value is a value")
	assert.Empty(t, keysIn(t, s, tagIndex, "absent"))
	assert.ElementsMatch(t, []string{"x", "y", ""}, s.ListIndexFuncValues(tagIndex))

	for _, c := range []struct {
		tags []string
		want []string
	}{{[]string{"x"}, []string{"a/1"}}, {[]string{"x", ""}, []string{"a/1", "a/2"}}, {[]string{"absent"}, nil}, {[]string{"y", "y", "x"}, []string{"a/1", "a/2"}}} {
		objects, err := s.Index(tagIndex, tagged(pod("b", "9"), c.tags...))
		require.NoError(t, err)
		var names []string
		for _, obj := range objects {
			names = append(names, nameOf(obj))
		}
		assert.ElementsMatch(t, c.want, names, "%q", c.tags)
	}
	objects, err := s.Index(tagIndex, pod("b", "9"))
	require.NoError(t, err)
	assert.Empty(t, objects, "no values, no objects")

	require.NoError(t, s.Update(tagged(pod("a", "1"), "z")))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "z"))
	assert.Equal(t, []string{"a/2"}, keysIn(t, s, tagIndex, "y"))
	assert.ElementsMatch(t, []string{"z", "y", ""}, s.ListIndexFuncValues(tagIndex), "no values without objects")
}

func TestQueriesNameTheIndexThatTheyMiss(t *testing.T) {
	s := newTagStore()
	_, indexErr := s.Index("absent", pod("a", "1"))
	_, keysErr := s.IndexKeys("absent", "x")
	_, byErr := s.ByIndex("absent", "x")
	for _, err := range []error{indexErr, keysErr, byErr} {
		require.ErrorContains(t, err, "Index with name absent does not exist")
	}
	assert.Equal(t, []string{}, s.ListIndexFuncValues("absent"))
	_, err := s.Index(tagIndex, tagged(pod("a", "1"), "bad"))
	require.Equal(t, errBoom, err, "as it is")
	_, err = s.Index(tagIndex, tagged(pod("a", "1"), "panic"))
	var panicked *cache.PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, "tag panics", panicked.Value)
}

// An index function may reuse its result slice. Fails if the slice is not copied.
func TestAnIndexKeepsNoSliceOfItsFunction(t *testing.T) {
	reused := make([]string, 1)
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"name": func(obj any) ([]string, error) {
		reused[0] = obj.(*object).Name
		return reused, nil
	}})
	require.NoError(t, s.Add(pod("a", "1")))
	require.NoError(t, s.Add(pod("a", "2")))
	require.NoError(t, s.Delete(pod("a", "1")))
	assert.Equal(t, []string{"2"}, s.ListIndexFuncValues("name"))
}

func TestIndexersCanBeAddedToAFilledStore(t *testing.T) {
	s := newTagStore()
	require.NoError(t, s.Add(tagged(pod("a", "1"), "x")))
	require.NoError(t, s.Add(pod("b", "1")))
	require.NoError(t, s.AddIndexers(nil))
	require.NoError(t, s.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "again": byTag}))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, cache.NamespaceIndex, "a"))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, "again", "x"))
	assert.Len(t, s.GetIndexers(), 3)
	require.NoError(t, s.Update(tagged(pod("a", "1"), "y")))
	require.NoError(t, s.Delete(pod("b", "1")))
	assert.Equal(t, []string{"a"}, s.ListIndexFuncValues(cache.NamespaceIndex))
	assert.Equal(t, []string{"y"}, s.ListIndexFuncValues("again"))
	assert.Equal(t, []string{"y"}, s.ListIndexFuncValues(tagIndex))
}

// blockingIndex is an index function that blocks for a/1 until letGo is closed.
func blockingIndex(letGo <-chan struct{}) cache.IndexFunc {
	var once atomic.Bool
	return func(obj any) ([]string, error) {
		if obj.(*object).Name == "1" && once.CompareAndSwap(false, true) {
			<-letGo
		}
		return byTag(obj)
	}
}

func TestOneOfTwoConcurrentAddIndexersOfOneNameFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTagStore()
		require.NoError(t, s.Add(tagged(pod("a", "1"), "x")))
		letGo := make(chan struct{})
		var err error
		var builder sync.WaitGroup
		builder.Go(func() { err = s.AddIndexers(cache.Indexers{"same": blockingIndex(letGo)}) })
		synctest.Wait()
		require.NoError(t, s.AddIndexers(cache.Indexers{"same": byTag}))
		close(letGo)
		builder.Wait()
		require.ErrorContains(t, err, "indexer conflict: map[same:{}]")
		assert.Equal(t, []string{"a/1"}, keysIn(t, s, "same", "x"))
	})
}

func TestTheNamespaceIndexNeedsMetadata(t *testing.T) {
	for _, obj := range []any{nil, (*object)(nil), 7} {
		_, err := cache.MetaNamespaceIndexFunc(obj)
		require.Error(t, err)
	}
	values, err := cache.MetaNamespaceIndexFunc(pod("", "node"))
	require.NoError(t, err)
	assert.Equal(t, []string{""}, values)
}

func TestAnIndexFunctionWithOneValueMakesAKey(t *testing.T) {
	keyFunc := cache.IndexFuncToKeyFuncAdapter(byTag)
	key, err := keyFunc(tagged(pod("a", "1"), "x"))
	require.NoError(t, err)
	assert.Equal(t, "x", key)
	for _, obj := range []*object{pod("a", "1"), tagged(pod("a", "1"), "x", "y"), tagged(pod("a", "1"), "bad")} {
		_, err := keyFunc(obj)
		require.Error(t, err)
	}
}
