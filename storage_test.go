package cache

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
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
	obj, exists := snapshot.Lookup("a/1")
	assert.True(t, exists)
	assert.Same(t, stored, obj)
	for _, absent := range []string{"", "1", "a", "a/", "a/3", "/1", "b/2"} {
		obj, exists = snapshot.Lookup(absent)
		assert.False(t, exists, absent)
		assert.Nil(t, obj, absent)
	}
	assert.ElementsMatch(t, s.List(), slices.Collect(snapshot.Values()))
	assert.ElementsMatch(t, s.List(), slices.Collect(snapshot.Values()))
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
		assert.Equal(t, want, namesOf(slices.Collect(maps.Values(maps.Collect(all)))), value)
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

// A snapshot's loop may write: it continues over what there was.
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

// What cannot be applied changes no snapshot but by the version that it counts for.
func TestASnapshotShowsTheStateBeforeABadOne(t *testing.T) {
	s := taggedStore(t)
	require.Error(t, s.Update(tagged(podAt("a", "1", "8"), "bad")))
	obj, exists := s.Snapshot().Lookup("a/1")
	require.True(t, exists)
	assert.Equal(t, "1", receivedOf(obj).ResourceVersion)
}

func TestAViewOfANamespaceHasNoSnapshot(t *testing.T) {
	whole, a, _ := viewsOf()
	assert.Implements(t, (*Snapshotter)(nil), whole)
	assert.NotImplements(t, (*Snapshotter)(nil), a)
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
	a.Bookmark("12")
	assert.Equal(t, "9", whole.Snapshot().ResourceVersion())
	assert.Equal(t, "8", lowest.ResourceVersion())
}

// unhurried is how long something may take that takes a moment.
const unhurried = time.Minute

// inTime fails if something waits. It is not in a bubble of virtual time: the caller that waits for
// a mutex holds that up, and the test would hang.
func inTime(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(unhurried):
		t.Fatalf("%s: somebody waits", what)
	}
}

// readAll asks a store everything that a reader can ask it.
func readAll(t *testing.T, s *cache, key string, count int) {
	for range 100 {
		_, exists, err := s.GetByKey(key)
		assert.NoError(t, err)
		assert.True(t, exists)
		assert.Equal(t, count, s.Snapshot().Len())
		found, err := s.ByIndex(NamespaceIndex, "a")
		assert.NoError(t, err)
		assert.Len(t, found, count)
	}
	stored, exists, err := s.Get(podAt("a", strings.TrimPrefix(key, "a/"), ""))
	assert.NoError(t, err)
	assert.True(t, exists)
	assert.Len(t, s.List(), count)
	assert.Len(t, s.ListKeys(), count)
	assert.Equal(t, []string{"a"}, s.ListIndexFuncValues(NamespaceIndex))
	keys, err := s.IndexKeys(NamespaceIndex, "a")
	assert.NoError(t, err)
	assert.Len(t, keys, count)
	sharing, err := s.Index(NamespaceIndex, stored)
	assert.NoError(t, err)
	assert.Len(t, sharing, count)
	assert.Equal(t, "1", s.LastStoreSyncResourceVersion())
	assert.Contains(t, s.GetIndexers(), NamespaceIndex)
}

// The end of a list that lacks an entry, or meets quarantined ones, looks at all of them. Fails if
// that is done where readers see it.
func TestReadersDoNotWaitForTheEndOfAList(t *testing.T) {
	for name, listed := range map[string]int{"an entry is missing": 9, "an object is quarantined": 10} {
		t.Run(name, func(t *testing.T) {
			s := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: func(obj any) ([]string, error) {
				if nameOf(obj) == "a/10" {
					return nil, errors.New("no namespace")
				}
				return MetaNamespaceIndexFunc(obj)
			}}).(*cache)
			r := s.BeginReplace(ReplaceOptions{Staged: true}).(*storeReplacement)
			var items []any
			for i := range 10 {
				require.NoError(t, s.Add(podAt("a", itoa(i), "1")))
				items = append(items, podAt("a", itoa(i), "1"))
			}
			s.Bookmark("1")
			if listed == 10 {
				require.Error(t, s.Add(podAt("a", "10", "1")))
			}
			_, err := r.Add(t.Context(), ReplacementPart{Items: items[:listed]})
			require.NoError(t, err)
			w := storeWrite{scope: s.scope, setsVersion: true, version: "1", list: r}
			s.storage.lock(r.staged.parts...)
			s.storage.open(&w, r.staged.parts...)
			inTime(t, "readers", func() { readAll(t, s, "a/7", 10) })
			s.storage.end(&w)
			r.Abort()
		})
	}
}

// G10: no reader waits while a large write is made, however long that takes: they see
// what was there before, until they see all of it. Fails if staged objects are made under
// the lock of those that are made where readers see them.
func TestReadersDoNotWaitForALargeWrite(t *testing.T) {
	s := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc}).(*cache)
	for i := range 10 {
		require.NoError(t, s.Add(podAt("a", itoa(i), "1")))
	}
	s.Bookmark("1")
	var all []change
	for i := range 100 {
		// They take the place of some of those that are there.
		obj := podAt("a", itoa(i+5), "2")
		all = append(all, change{prepared: prepared{
			object: obj,
			key:    table.KeyOf(nameOf(obj)),
			origin: originOf(receivedOf(obj)),
		}})
	}
	w := storeWrite{scope: s.scope, version: "2"}
	s.storage.begin(&w, all)
	read := func() { inTime(t, "readers", func() { readAll(t, s, "a/7", 10) }) }
	for i := range all {
		require.NoError(t, s.storage.apply(&w, &all[i]))
		if i%50 == 0 {
			read()
		}
	}
	key := table.KeyOf("a/1")
	deletion := prepared{deletes: true, key: key, place: s.storage.table.Seek(key)}
	require.NoError(t, s.storage.apply(&w, &change{prepared: deletion}))
	read()
	before := s.Snapshot()
	s.storage.end(&w, all)
	assert.Len(t, s.List(), 104)
	assert.Equal(t, "2", s.Snapshot().ResourceVersion())
	assert.Equal(t, "1", before.ResourceVersion())
	assert.Equal(t, 10, before.Len())
}

// Handlers have received the state that repaired the object. Fails if a deletion in the same write
// as the repair is delivered as a tombstone.
func TestADeletionAfterARepairInOneWriteHasItsFinalState(t *testing.T) {
	refuseMarked := func(obj any) ([]string, error) {
		if obj.(*object).Labels["bad"] == "yes" {
			return nil, errors.New("bad")
		}
		return nil, nil
	}
	s := NewIndexer(MetaNamespaceKeyFunc, Indexers{"i": refuseMarked}).(*cache)
	bad := podAt("a", "1", "2")
	bad.Labels = map[string]string{"bad": "yes"}
	require.NoError(t, s.Update(podAt("a", "1", "1")))
	require.Error(t, s.Update(bad))
	final := podAt("a", "1", "4")
	batch := []change{
		{received: received{kind: Updated, object: podAt("a", "1", "3")}},
		{received: received{kind: Deleted, object: final}},
	}
	_, err := s.acceptChanges(bg, batch)
	require.NoError(t, err)
	require.Equal(t, any(final), batch[1].finalState())
}

// readTexts is what a reader finds under each key: the version of the object, or "refused" with the
// version of a quarantined one, or "".
func readTexts(reader Reader[any], keys ...string) map[string]string {
	texts := map[string]string{"version": reader.ResourceVersion()}
	for _, key := range keys {
		obj, err := reader.Get(key)
		var refused *ObjectError
		switch {
		case errors.As(err, &refused):
			texts[key] = "refused " + refused.ResourceVersion
		case err == nil:
			texts[key] = receivedOf(obj).ResourceVersion
		}
	}
	return texts
}

// G10: readers see what a write quarantines and releases at its end, with its objects and version.
// Fails if they see a part of it during the write, or lose a key that stays quarantined.
func TestAWriteIsReadWithItsQuarantine(t *testing.T) {
	for name, more := range map[string]int{"few": 0, "many": 2 * table.InPlace} {
		t.Run(name, func(t *testing.T) { testQuarantineOfWrite(t, more) })
	}
}

func testQuarantineOfWrite(t *testing.T, more int) {
	refuseTagged := Indexers{"i": func(obj any) ([]string, error) {
		if obj.(*object).Labels["bad"] == "yes" {
			return nil, errBoom
		}
		return nil, nil
	}}
	s := NewIndexer(MetaNamespaceKeyFunc, refuseTagged).(*cache)
	good := func(name, version string) any { return podAt("a", name, version) }
	bad := func(name, version string) any {
		obj := podAt("a", name, version)
		obj.Labels = map[string]string{"bad": "yes"}
		return obj
	}
	deletion := func(name string) change { return change{received: received{kind: Deleted, object: good(name, "4")}} }
	update := func(obj any) change { return change{received: received{kind: Updated, object: obj}} }
	require.Error(t, s.Replace([]any{bad("repaired", "1"), bad("kept", "1"), bad("again", "1")}, "1"))
	all := []change{
		update(good("repaired", "2")),
		update(bad("kept", "2")),
		update(good("again", "2")), deletion("again"), update(bad("again", "5")),
		update(bad("added", "2")),
		update(bad("passing", "2")), update(good("passing", "3")),
		update(bad("deleted", "2")), deletion("deleted"),
	}
	for i := range more {
		all = append(all, update(bad(itoa(i), "2")))
	}

	keys := []string{"a/repaired", "a/kept", "a/again", "a/added", "a/passing", "a/deleted", "a/7"}
	before := map[string]string{
		"version": "1", "a/repaired": "refused 1", "a/kept": "refused 1", "a/again": "refused 1",
	}
	require.Equal(t, before, readTexts(s.Snapshot(), keys...))
	in := s.intake()
	s.identifyAll(all)
	for i := range all {
		require.NoError(t, in.prepare(bg, &all[i]))
	}
	w := storeWrite{scope: s.scope, version: "5"}
	s.storage.lock(all)
	s.storage.table.BeginStaged()
	for i := range all {
		all[i].prepared.place = s.storage.table.Seek(all[i].prepared.key)
		require.NoError(t, s.storage.apply(&w, &all[i]))
		assert.Equal(t, before, readTexts(s.Snapshot(), keys...), "after change %d", i)
		assert.Equal(t, before, readTexts(s.live(), keys...), "after change %d", i)
	}
	s.storage.end(&w)
	after := map[string]string{
		"version": "5", "a/repaired": "2", "a/kept": "refused 2", "a/again": "refused 5",
		"a/added": "refused 2", "a/passing": "3",
	}
	if more > 0 {
		after["a/7"] = "refused 2"
	}
	assert.Equal(t, after, readTexts(s.Snapshot(), keys...))
	assert.Equal(t, after, readTexts(s.live(), keys...))
	require.NoError(t, s.Replace(nil, "6"))
	assert.False(t, s.storage.quarantine.any())
}
