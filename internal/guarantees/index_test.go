package guarantees

import (
	"fmt"
	"math"
	"runtime"
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

// An added index calls its function once for each stored object and once for each write, whatever the
// rate of writes. Fails if objects that were written during a pass need another pass.
func TestAnIndexIsAddedInOnePassBesideWrites(t *testing.T) {
	const objects, maxWrites = 10_000, 40_000
	s := newTagStore()
	for i := range objects {
		must(t, s.Add(podAt("a", itoa(i), "1")))
	}
	calls, writes, writing := 0, 0, false
	require.NoError(t, s.AddIndexers(cache.Indexers{"added": func(obj any) ([]string, error) {
		if calls++; !writing && writes < maxWrites {
			writing = true
			writes++
			must(t, s.Update(tagged(podAt("a", itoa(writes%objects), itoa(writes+1)), "x")))
			writing = false
		}
		return byTag(obj)
	}}))
	assert.Equal(t, objects, writes)
	assert.Equal(t, objects+writes, calls)
	assert.Len(t, keysIn(t, s, "added", "x"), objects)
}

// While an index is added, it is complete after every kind of write, and not visible before. Each
// case writes before, returns a write for the time in which the index function blocks, and one for
// the time after the index was added.
func TestAnIndexIsCompleteAfterWritesBesideItsAddition(t *testing.T) {
	nothing := func() {}
	relist := []any{tagged(podAt("a", "1", "2"), "y"), tagged(podAt("a", "3", "2"), "z")}
	for name, write := range map[string]func(t *testing.T, s fullStore) (meanwhile, afterwards func()){
		"Update, Delete and Add": func(t *testing.T, s fullStore) (func(), func()) {
			return func() {
				must(t, s.Update(tagged(pod("a", "1"), "y")), s.Delete(pod("a", "2")), s.Add(tagged(pod("a", "3"), "x", "z")))
				must(t, s.Add(tagged(pod("a", "2"), "z")), s.Delete(pod("a", "3")))
			}, nothing
		},
		"Replace": func(t *testing.T, s fullStore) (func(), func()) {
			return func() { must(t, s.Replace(relist, "2")) }, nothing
		},
		"Replace by many": func(t *testing.T, s fullStore) (func(), func()) {
			var many []any
			for i := range 5000 {
				many = append(many, tagged(podAt("b", itoa(i), "2"), itoa(i)))
			}
			return func() { must(t, s.Replace(many, "2"), s.Replace(relist, "3")) }, nothing
		},
		"the commit of a relist": func(t *testing.T, s fullStore) (func(), func()) {
			must(t, s.Replace(s.List(), "1"))
			r := beginReplace(t, s)
			r.add(relist...)
			return func() { r.commit("2") }, nothing
		},
		"a relist that is committed afterwards": func(t *testing.T, s fullStore) (func(), func()) {
			must(t, s.Replace(s.List(), "1"))
			r := beginReplace(t, s)
			r.add(relist[:1]...)
			return func() { r.add(relist[1:]...) }, func() { r.commit("2") }
		},
		"parts of a first list": func(t *testing.T, s fullStore) (func(), func()) {
			r := beginReplace(t, s)
			r.add(relist[:1]...)
			return func() { r.add(relist[1:]...) }, func() { r.commit("2") }
		},
		"another index": func(t *testing.T, s fullStore) (func(), func()) {
			return func() { must(t, s.AddIndexers(cache.Indexers{"another": byTag})) }, nothing
		},
		"another index that fails": func(t *testing.T, s fullStore) (func(), func()) {
			return func() {
				require.Error(t, s.AddIndexers(cache.Indexers{"another": func(any) ([]string, error) { return nil, errBoom }}))
				must(t, s.Update(tagged(pod("a", "2"), "y")))
			}, nothing
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTagStore()
				must(t, s.Add(tagged(podAt("a", "1", "1"), "x")), s.Add(tagged(podAt("a", "2", "1"), "x", "y")))
				meanwhile, afterwards := write(t, s)
				letGo := make(chan struct{})
				var builder sync.WaitGroup
				builder.Go(func() { assert.NoError(t, s.AddIndexers(cache.Indexers{"added": blockingIndex(letGo)})) })
				synctest.Wait()
				meanwhile()
				_, err := s.ByIndex("added", "x")
				require.Error(t, err)
				assert.NotContains(t, s.GetIndexers(), "added")
				close(letGo)
				builder.Wait()
				check := func() {
					want, err := indexContentOf(s.Snapshot(), tagIndex)
					must(t, err)
					for added := range s.GetIndexers() {
						got, err := indexContentOf(s.Snapshot(), added)
						must(t, err)
						assert.Equal(t, want, got, added)
					}
					assert.Contains(t, s.GetIndexers(), "added")
				}
				check()
				afterwards()
				check()
			})
		})
	}
}

// Fails if writes call the function of an index that was not added.
func TestTheFunctionOfAnIndexThatWasNotAddedIsNotCalledAgain(t *testing.T) {
	s, calls := newTagStore(), 0
	must(t, s.Add(pod("a", "1")), s.Add(pod("a", "2")))
	require.ErrorIs(t, s.AddIndexers(cache.Indexers{"failing": func(any) ([]string, error) {
		calls++
		return nil, errBoom
	}}), errBoom)
	assert.Equal(t, 1, calls)
	must(t, s.Add(pod("a", "3")))
	assert.Equal(t, 1, calls)
}

// updateCost is what an update of an object with so many index values allocates, of which so many
// are new: the least of several updates, since other goroutines may allocate, too.
func updateCost(t *testing.T, values, changed int) (objects, bytes uint64) {
	t.Helper()
	store := newTagStore()
	round := 0
	next := func() *object {
		round++
		tags := make([]string, values)
		for i := range tags {
			// The changed ones are spread over the order of all values.
			tags[i] = fmt.Sprintf("%06d", i)
			if i%(values/changed) == 0 {
				tags[i] += "-" + itoa(round)
			}
		}
		return tagged(podAt("a", "x", itoa(round)), tags...)
	}
	must(t, store.Add(next()))
	objects = math.MaxUint64
	bytes = math.MaxUint64
	for range 8 {
		state := next()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		must(t, store.Update(state))
		runtime.ReadMemStats(&after)
		objects = min(objects, after.Mallocs-before.Mallocs)
		bytes = min(bytes, after.TotalAlloc-before.TotalAlloc)
	}
	return objects, bytes
}

// An update does work for each index value, not for each pair of values. Fails if the list of all
// values is copied for each one that changes.
func TestAnUpdateAllocatesInProportionToItsIndexValues(t *testing.T) {
	for _, share := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("1 of %d is new", share), func(t *testing.T) {
			objects, bytes := updateCost(t, 1024, 1024/share)
			moreObjects, moreBytes := updateCost(t, 16*1024, 16*1024/share)
			assert.Less(t, moreObjects, 2*16*objects)
			assert.Less(t, moreBytes, 2*16*bytes)
		})
	}
	t.Run("one is new", func(t *testing.T) {
		objects, bytes := updateCost(t, 1024, 1)
		moreObjects, moreBytes := updateCost(t, 16*1024, 1)
		assert.Less(t, moreObjects, 2*objects, "only the new value needs memory of its own")
		assert.Less(t, moreBytes, 2*16*bytes)
	})
}
