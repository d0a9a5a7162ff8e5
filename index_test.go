package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Equal(t, "tag panics", panicked.Value)
}

// An index function may reuse the slice that it returns. Fails if appendValues
// does not copy.
func TestAnIndexKeepsNoSliceOfItsFunction(t *testing.T) {
	reused := make([]string, 1)
	s := NewIndexer(MetaNamespaceKeyFunc, Indexers{"name": func(obj any) ([]string, error) {
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
	require.NoError(t, s.AddIndexers(Indexers{NamespaceIndex: MetaNamespaceIndexFunc, "again": byTag}))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, NamespaceIndex, "a"))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, "again", "x"))
	assert.Len(t, s.GetIndexers(), 3)
	require.NoError(t, s.Update(tagged(pod("a", "1"), "y")))
	require.NoError(t, s.Delete(pod("b", "1")))
	assert.Equal(t, []string{"a"}, s.ListIndexFuncValues(NamespaceIndex))
	assert.Equal(t, []string{"y"}, s.ListIndexFuncValues("again"))
	assert.Equal(t, []string{"y"}, s.ListIndexFuncValues(tagIndex))
}

// slowIndex is an index function that waits, in the call for a/1 only, until it
// is let go.
func slowIndex(letGo <-chan struct{}) IndexFunc {
	var once atomic.Bool
	return func(obj any) ([]string, error) {
		if obj.(*object).Name == "1" && once.CompareAndSwap(false, true) {
			<-letGo
		}
		return byTag(obj)
	}
}

// Writers go on while an index is being built, and what they write is in the
// index when it is there. Fails if addComputed skips the comparison of objects.
func TestAnIndexBeingBuiltMissesNoWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTagStore()
		for _, name := range []string{"1", "2", "3"} {
			require.NoError(t, s.Add(tagged(podAt("a", name, "1"), "old")))
		}
		letGo := make(chan struct{})
		var err error
		var builder sync.WaitGroup
		builder.Go(func() { err = s.AddIndexers(Indexers{"slow": slowIndex(letGo)}) })
		synctest.Wait()

		require.NoError(t, s.Update(tagged(podAt("a", "2", "2"), "new")))
		require.NoError(t, s.Update(tagged(podAt("a", "1", "2"), "new", "newest")))
		require.NoError(t, s.Delete(pod("a", "3")))
		require.NoError(t, s.Add(tagged(podAt("a", "4", "2"), "new")))
		require.NoError(t, s.AddIndexers(Indexers{"other": byTag}), "two builds at once")
		_, absent := s.ByIndex("slow", "new")
		require.Error(t, absent, "it is not there yet")
		close(letGo)
		builder.Wait()
		require.NoError(t, err)
		for _, index := range []string{"slow", "other", tagIndex} {
			assert.ElementsMatch(t, []string{"new", "newest"}, s.ListIndexFuncValues(index))
			assert.Equal(t, []string{"a/1", "a/2", "a/4"}, keysIn(t, s, index, "new"))
			assert.Equal(t, []string{"a/1"}, keysIn(t, s, index, "newest"))
		}
	})
}

func TestAFailureCountsForABuildOnlyIfTheObjectIsStillThere(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, s *cache)
		fails     bool
	}{
		"the old state is replaced": {func(t *testing.T, s *cache) { require.NoError(t, s.Update(pod("a", "2"))) }, false},
		"the object is deleted":     {func(t *testing.T, s *cache) { require.NoError(t, s.Delete(pod("a", "2"))) }, false},
		"it stays":                  {func(*testing.T, *cache) {}, true},
		"a new one fails": {func(t *testing.T, s *cache) {
			require.NoError(t, s.Update(pod("a", "2")))
			require.NoError(t, s.Add(tagged(pod("a", "3"), "bad")), "the stored indexes take it")
		}, true},
		"a new one failed and is gone": {func(t *testing.T, s *cache) {
			require.NoError(t, s.Update(pod("a", "2")))
			require.NoError(t, s.Add(tagged(pod("a", "3"), "bad")))
			require.NoError(t, s.Delete(pod("a", "3")))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewIndexer(MetaNamespaceKeyFunc, nil).(*cache)
				require.NoError(t, s.Add(tagged(pod("a", "2"), "bad")))
				letGo := make(chan struct{})
				wait := func(obj any) ([]string, error) {
					values, err := byTag(obj)
					if err != nil && obj.(*object).Name == "2" {
						<-letGo
					}
					return values, err
				}
				var err error
				var builder sync.WaitGroup
				builder.Go(func() { err = s.AddIndexers(Indexers{"slow": wait}) })
				synctest.Wait()
				c.meanwhile(t, s)
				close(letGo)
				builder.Wait()
				if c.fails {
					require.ErrorIs(t, err, errBoom)
					assert.Empty(t, s.GetIndexers())
				} else {
					require.NoError(t, err)
					assert.Len(t, s.GetIndexers(), 1)
				}
			})
		})
	}
}

func TestOfTwoBuildsOfOneNameOneFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTagStore()
		require.NoError(t, s.Add(tagged(pod("a", "1"), "x")))
		letGo := make(chan struct{})
		var err error
		var builder sync.WaitGroup
		builder.Go(func() { err = s.AddIndexers(Indexers{"same": slowIndex(letGo)}) })
		synctest.Wait()
		require.NoError(t, s.AddIndexers(Indexers{"same": byTag}))
		close(letGo)
		builder.Wait()
		require.ErrorContains(t, err, "indexer conflict: map[same:{}]")
		assert.Equal(t, []string{"a/1"}, keysIn(t, s, "same", "x"))
	})
}

// A write that was prepared before an index was added has values for it all the
// same, also if the last one is added after the write last looked. Fails if
// storage.begin does not look again under the lock.
func TestAnIndexAddedDuringAWriteIsNotMissed(t *testing.T) {
	var s *cache
	// Each index adds the next one in the first call of its function.
	var chain func(left int) IndexFunc
	chain = func(left int) IndexFunc {
		called := false
		return func(obj any) ([]string, error) {
			if !called && left > 0 {
				called = true
				require.NoError(t, s.AddIndexers(Indexers{"added " + itoa(left): chain(left - 1)}))
			}
			return byTag(obj)
		}
	}
	s = NewIndexer(MetaNamespaceKeyFunc, Indexers{tagIndex: chain(3)}).(*cache)
	require.NoError(t, s.Add(tagged(pod("a", "1"), "x")))
	assert.Len(t, s.GetIndexers(), 4)
	for name := range s.GetIndexers() {
		assert.Equal(t, []string{"a/1"}, keysIn(t, s, name, "x"), name)
	}
}

// Writers, readers and builders at once; run with the race detector.
func TestAStoreMayBeUsedByAllAtOnce(t *testing.T) {
	const rounds = 300
	s := newTagStore()
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range rounds {
				name := itoa(i % 7)
				obj := tagged(podAt("a", name, itoa(i)), itoa(i%5), itoa(w))
				switch (i + w) % 5 {
				case 0:
					_ = s.Add(obj)
				case 1:
					_ = s.Delete(obj)
				case 2:
					_ = takeOne(s, event{kind: Updated, obj: obj, version: itoa(i)})
				case 3:
					applyBatch(s, context.Background(), batch{changes: []queued{changeOf(Updated, obj), changeOf(Deleted, podAt("a", itoa(i%3), itoa(i)))}}, false, nil)
				case 4:
					r := s.BeginReplace(ReplaceOptions{})
					_, _ = r.Part(bg, ReplacementPart{Items: []any{obj}, Gone: []any{pod("a", itoa((i+1)%7))}})
					if i%2 == 0 {
						_ = r.Commit(bg, itoa(i))
					}
					r.Abort()
				}
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for i := range rounds {
				for _, obj := range s.List() {
					assert.NotNil(t, obj)
				}
				objects, err := s.ByIndex(tagIndex, itoa(i%5))
				assert.NoError(t, err)
				assert.NotContains(t, objects, nil)
				_, _, _ = s.GetByKey("a/1")
				_, _ = receivedUnder(s, "a/1")
				_, _ = s.Index(tagIndex, tagged(pod("a", "1"), itoa(i%5)))
				s.ListKeys()
				s.ListIndexFuncValues(tagIndex)
				s.LastStoreSyncResourceVersion()
				s.GetIndexers()
				s.quarantined()
			}
		})
	}
	for b := range 3 {
		all.Go(func() {
			for i := range 10 {
				assert.NoError(t, s.AddIndexers(Indexers{"built" + itoa(10*b+i): byTag}))
			}
		})
	}
	all.Wait()
	want := map[string][]string{}
	for _, obj := range s.List() {
		values, _ := byTag(obj)
		for _, value := range values {
			want[value] = append(want[value], nameOf(obj))
		}
	}
	assert.Len(t, s.GetIndexers(), 31)
	for name := range s.GetIndexers() {
		assert.Len(t, s.ListIndexFuncValues(name), len(want), name)
		for value, keys := range want {
			assert.ElementsMatch(t, keys, keysIn(t, s, name, value), name)
		}
	}
}

func TestTheNamespaceIndexNeedsMetadata(t *testing.T) {
	for _, obj := range []any{nil, (*object)(nil), 7} {
		_, err := MetaNamespaceIndexFunc(obj)
		require.Error(t, err)
	}
	values, err := MetaNamespaceIndexFunc(pod("", "node"))
	require.NoError(t, err)
	assert.Equal(t, []string{""}, values)
}

func TestAnIndexFunctionWithOneValueMakesAKey(t *testing.T) {
	keyFunc := IndexFuncToKeyFuncAdapter(byTag)
	key, err := keyFunc(tagged(pod("a", "1"), "x"))
	require.NoError(t, err)
	assert.Equal(t, "x", key)
	for _, obj := range []*object{pod("a", "1"), tagged(pod("a", "1"), "x", "y"), tagged(pod("a", "1"), "bad")} {
		_, err := keyFunc(obj)
		require.Error(t, err)
	}
}
