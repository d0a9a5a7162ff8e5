package cache

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manyTagged are so many objects at a version, one tag each.
func manyTagged(n int, version, tag string) (all []any) {
	for i := range n {
		all = append(all, tagged(podAt("a", itoa(i), version), tag))
	}
	return all
}

// requireTagged says that there are just so many objects, all at a version and with a tag.
func requireTagged(t *testing.T, s *cache, n int, version, tag string) {
	t.Helper()
	require.Len(t, keysIn(t, s, tagIndex, tag), n)
	require.Equal(t, []string{tag}, s.ListIndexFuncValues(tagIndex))
	for key, at := range contents(s) {
		require.Equal(t, version, at, key)
		received, _ := s.Received(key)
		require.Equal(t, version, received.ResourceVersion, key)
	}
	require.Len(t, s.ListKeys(), n)
}

// What was looked at while a list came is looked for again at its end where somebody else has
// removed anything meanwhile: a cell may be that of another key by then. Fails if putOrdinary
// trusts numbers that say nothing any more, or if what is staged does not count as listed then.
func TestOthersMayRemoveAndAddWhileAListIsPrepared(t *testing.T) {
	s := newTagStore()
	require.NoError(t, s.Replace(manyTagged(100, "1", "old"), "1"))
	r := begin(t, s)
	r.items(manyTagged(100, "2", "new")[:70]...)
	for i := range 50 {
		require.NoError(t, s.Delete(podAt("a", itoa(i), "1")))
	}
	for i := range 50 {
		require.NoError(t, s.Add(tagged(podAt("b", itoa(i), "1"), "other"))) // in the cells of those
	}
	r.items(manyTagged(100, "2", "new")[70:]...)
	r.commit("2")
	requireTagged(t, s, 100, "2", "new")
}

// The same where it happens within the functions of a user, between two items. Fails if
// lookedItems takes for known what has gone by the time the list is shown.
func TestAnIndexFunctionMayChangeTheStore(t *testing.T) {
	var s *cache
	calls := 0
	s = NewIndexer(MetaNamespaceKeyFunc, Indexers{tagIndex: func(obj any) ([]string, error) {
		if calls++; calls == 210 {
			require.NoError(t, s.Delete(podAt("a", "99", "1")))
			require.NoError(t, s.Add(tagged(podAt("b", "1", "1"), "other")))
		}
		return byTag(obj)
	}}).(*cache)
	require.NoError(t, s.Replace(manyTagged(200, "1", "old"), "1"))
	require.NoError(t, s.Replace(manyTagged(200, "2", "new"), "2"))
	require.Greater(t, calls, 400)
	requireTagged(t, s, 200, "2", "new")
}

// Fails if what has become of the index functions since is not noticed, before the list ends or
// by who shows it.
func TestIndexersThatComeWhileAListIsPreparedCountForAllOfIt(t *testing.T) {
	for _, before := range []int{0, 40, 100} {
		s := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc}).(*cache)
		require.NoError(t, s.Replace(manyTagged(100, "1", "old"), "1"))
		r := begin(t, s)
		all := manyTagged(100, "2", "new")
		r.items(all[:before]...)
		require.NoError(t, s.AddIndexers(Indexers{tagIndex: byTag}))
		r.items(all[before:]...)
		r.commit("2")
		requireTagged(t, s, 100, "2", "new")
		require.Len(t, keysIn(t, s, NamespaceIndex, "a"), 100)
	}
}

// Objects without a UID cannot be told from each other, so none is known to be unchanged: each
// state of a list that brings several is staged. Fails if an earlier one is written later.
func TestOfStatesThatDoNotIdentifyThemselvesTheLastOneCounts(t *testing.T) {
	s := newTagStore()
	var all []any
	for _, version := range []string{"1", "2", "3"} {
		for i := range 40 {
			o := tagged(podAt("a", itoa(i), version), "of "+version)
			if i%2 == 0 {
				o = tagged(o, "of "+version, "also") // which is not ordinary
			}
			o.UID = ""
			all = append(all, o)
		}
	}
	for range 2 {
		require.NoError(t, s.Replace(all, "3"))
		require.ElementsMatch(t, []string{"also", "of 3"}, s.ListIndexFuncValues(tagIndex))
		require.Len(t, keysIn(t, s, tagIndex, "of 3"), 40)
		require.Len(t, keysIn(t, s, tagIndex, "also"), 20)
		require.Len(t, s.List(), 40)
	}
}

// A list of what has changed costs, until it is shown, what a table is given of each object:
// some 160 bytes with one index, and copies of the cells, 33. Fails if more is kept of an
// ordinary one, or more of one that is unchanged than its key.
func TestAListKeepsLittleOfAnObject(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector allocates")
	}
	const n = 20_000
	of := func(version string) (all []any) {
		for i := range n {
			all = append(all, podAt(fmt.Sprint("ns-", i%20), itoa(i), version))
		}
		return all
	}
	s := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	bytes := func(list []any) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		require.NoError(t, s.Replace(list, "1"))
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc-before.TotalAlloc) / n
	}
	bytes(of("1"))
	assert.LessOrEqual(t, bytes(of("2")), 160)
	assert.LessOrEqual(t, bytes(of("2")), 60)
}
