package cache

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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
		"a new one failed and is removed": {func(t *testing.T, s *cache) {
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

// A write that was prepared before an index was added has values for it all the
// same, also if the last one is added after the write last looked. Fails if
// storeWrite.begin does not look again under the lock.
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
					updated := event{kind: Updated, obj: obj}
					deleted := event{kind: Deleted, obj: podAt("a", itoa(i%3), itoa(i))}
					_, _ = s.acceptChanges(bg, changesOf(updated, deleted))
				case 4:
					r := s.BeginReplace(ReplaceOptions{})
					_, _ = r.Add(bg, ReplacementPart{Items: []any{obj}, Deleted: []any{pod("a", itoa((i+1)%7))}})
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
				s.quarantinedObjects()
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

// client-go's AddIndexers looks at the names first as well.
func TestAnIndexWhoseNameIsInUseFailsBeforeItsFunctionIsCalled(t *testing.T) {
	s := NewIndexer(MetaNamespaceKeyFunc, Indexers{"tag": byTag})
	require.NoError(t, s.Add(pod("a", "1")))
	err := s.AddIndexers(Indexers{"tag": func(any) ([]string, error) {
		t.Error("the function was called")
		return nil, nil
	}})
	require.EqualError(t, err, "indexer conflict: map[tag:{}]")
}
