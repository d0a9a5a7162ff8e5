package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

// goodStore has all methods that TestStore checks.
type goodStore interface {
	cache.Indexer
	cache.Replacer
	ObjectVersion(key string) (cache.ObjectVersion, bool)
	cache.ResourceVersionUpdater
}

func newGoodStore() goodStore {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil).(goodStore)
}

func TestTheStoreBehindTheFaultsIsGood(t *testing.T) {
	for _, virtual := range []bool{false, true} {
		TestStore(t, StoreConfig{
			Virtual: virtual,
			New:     func(testing.TB) ReflectorStore { return struct{ goodStore }{newGoodStore()} },
		})
	}
}

func TestEachCheckOfAStoreSeesItsFaults(t *testing.T) {
	checks := map[string]check[*storeTrial]{}
	for _, c := range storeChecks() {
		checks[c.name] = c
	}
	seen := map[string]bool{}
	for _, fault := range storeFaults {
		seen[fault.check] = true
		t.Run(fmt.Sprintf("%T", fault.of(newGoodStore())), func(t *testing.T) {
			require.Contains(t, checks, fault.check)
			store := fault.of(newGoodStore())
			config := StoreConfig{New: func(testing.TB) ReflectorStore { return store }}
			if hangs, ok := store.(interface{ release() }); ok {
				config.Patience = 300 * time.Millisecond
				t.Cleanup(hangs.release)
			}
			lacking, err := runCheck(t, config.pace(), checks[fault.check], config.start)
			require.Empty(t, lacking)
			require.ErrorContains(t, err, fault.says)
		})
	}
	for name := range checks {
		assert.True(t, seen[name], "no fault shows that this check can fail: %s", name)
	}
}

// storeFaults are stores with one fault each, and the check that must find it.
var storeFaults = []struct {
	check string
	says  string // part of the check's error
	of    func(goodStore) ReflectorStore
}{
	{"a new store is empty", `holds ["a=1"]`, func(s goodStore) ReflectorStore {
		_ = s.Add(annotatedObject(StoreObject{Name: "a", Mark: "1"}))
		return s
	}},
	{"a new store is empty", "where there is nothing", func(s goodStore) ReflectorStore { return everythingExists{s} }},
	{"an added object is found under its key", "holds []", func(s goodStore) ReflectorStore { return losesAdds{s} }},
	{"an added object is found under its key", "ListKeys says", func(s goodStore) ReflectorStore { return losesKeys{s} }},
	{"an added object is found under its key", "Get of", func(s goodStore) ReflectorStore { return getsNothing{s} }},
	{"an added object is found under its key", "it panicked: no adding", func(s goodStore) ReflectorStore { return panics{s} }},
	{"a newer state replaces the older one", `holds ["a=2"]`, func(s goodStore) ReflectorStore { return addsOnce{s} }},
	{"a newer state replaces the older one", `"b=1"`, func(s goodStore) ReflectorStore { return updatesNothingNew{s} }},
	{"a newer state replaces the older one", "with another UID", func(s goodStore) ReflectorStore { return keepsFirstUID{s} }},
	{"a newer state replaces the older one", "Get of a=4", func(s goodStore) ReflectorStore { return returnsArgument{s} }},
	{"a deleted object is not found", "after Delete", func(s goodStore) ReflectorStore { return losesDeletes{s} }},
	{"a deleted object is not found", "no mistake", func(s goodStore) ReflectorStore { return missesDeleted{s} }},
	{"a tombstone deletes its key", "whose last state is unknown", func(s goodStore) ReflectorStore { return refusesTombstones{s} }},
	{"a tombstone deletes its key", "whose last state is unknown", func(s goodStore) ReflectorStore { return refusesKnownStates{s} }},
	{"a tombstone deletes its key", "after Delete of a", func(s goodStore) ReflectorStore { return ignoresTombstones{s} }},
	{"Replace is the whole content", "has been deleted", func(s goodStore) ReflectorStore { return mergesLists{s} }},
	{"Resync changes nothing", "ends a reflector's watch", func(s goodStore) ReflectorStore { return failsResync{s} }},
	{"Resync changes nothing", "after Resync", func(s goodStore) ReflectorStore { return emptiesAtResync{s} }},
	{"an object without a key is an error and changes nothing", "could not report it", func(s goodStore) ReflectorStore { return swallowsErrors{s} }},
	{"an object without a key is an error and changes nothing", "after writes that failed", func(s goodStore) ReflectorStore { return emptiesOnError{s} }},
	{"a list with an object without a key is an error and loses nothing", "all others or nothing", func(s goodStore) ReflectorStore { return stopsHalfway{s} }},
	{"a list with an object without a key is an error and loses nothing", "could not report it", func(s goodStore) ReflectorStore { return swallowsErrors{s} }},
	{"returned slices are the caller's", "changed with the store", func(s goodStore) ReflectorStore { return &reusesSlice{goodStore: s} }},
	{"returned slices are the caller's", "nil", func(s goodStore) ReflectorStore { return &keepsSlice{goodStore: s} }},
	{"the version is that of the last list or bookmark", `is "" after Replace at 70`, func(s goodStore) ReflectorStore { return knowsNoVersion{s} }},
	{"the version is that of the last list or bookmark", `is "80" after Bookmark of 90`, func(s goodStore) ReflectorStore { return takesNoBookmarks{s} }},
	{"setting a version changes no object", "after UpdateResourceVersion", func(s goodStore) ReflectorStore { return emptiesAtVersion{s} }},
	{"ObjectVersion is that of the received object", "for unchanged", func(s goodStore) ReflectorStore { return receivesNothing{s} }},
	{"readers and writers may run concurrently", "writers at once", func(s goodStore) ReflectorStore { return newLosesRaces(s) }},
	{"readers and writers may run concurrently", "has not returned", func(s goodStore) ReflectorStore { return waitsForReaders{s, make(chan struct{})} }},
	{"a reader sees all of a Replace or nothing", "a reader found", func(s goodStore) ReflectorStore { return &replacesOneByOne{goodStore: s} }},
	{"indexes equal a full scan", "ByIndex", func(s goodStore) ReflectorStore { return indexesNil{s} }},
	{"indexes equal a full scan", "IndexKeys", func(s goodStore) ReflectorStore { return &remembersIndexes{goodStore: s} }},
	{"indexes equal a full scan", "ListIndexFuncValues", func(s goodStore) ReflectorStore { return &keepsValues{goodStore: s} }},
	{"indexes equal a full scan", `Index "by mark" with`, func(s goodStore) ReflectorStore { return findsNothing{s} }},
	{"indexes equal a full scan", `has ["c" "c" "d"]`, func(s goodStore) ReflectorStore { return repeatsObjects{s} }},
	{"an index added later has the stored objects", "ListIndexFuncValues", func(s goodStore) ReflectorStore { return addsNoIndexLater{s} }},
	{"an index added while the store is written has everything", "a full scan", func(s goodStore) ReflectorStore { return indexesWhatWasThere{s} }},
	{"an index that does not exist is an error", "misspelt", func(s goodStore) ReflectorStore { return findsNothingUnderAnyName{s} }},
	{"an index of a used name is refused", "one index", func(s goodStore) ReflectorStore { return swallowsErrors{s} }},
	{"an index of a used name is refused", "no longer", func(s goodStore) ReflectorStore { return addsWhatItCan{s} }},
	{"the map of index functions is the caller's", "emptied the map", func(s goodStore) ReflectorStore { return &sharesIndexers{goodStore: s} }},
	{"an object that cannot be indexed is an error and changes nothing", "returned no error", func(s goodStore) ReflectorStore { return swallowsErrors{s} }},
	{"an object that cannot be indexed is an error and changes nothing", "cannot be indexed: the store holds", func(s goodStore) ReflectorStore { return emptiesOnError{s} }},
	{"an index that fails for a stored object is refused", "lack it forever", func(s goodStore) ReflectorStore { return swallowsErrors{s} }},
	{"a replacement is complete at its commit", "LastStoreSyncResourceVersion", func(s goodStore) ReflectorStore { return commitsAtNoVersion{s} }},
	{"a replacement is complete at its commit", "the commit of", func(s goodStore) ReflectorStore { return losesFirstPart{s} }},
	{"a first list is visible as it arrives", "the first part of a first list", func(s goodStore) ReflectorStore { return alwaysStaged{s} }},
	{"a first list is visible as it arrives", "of a staged list", func(s goodStore) ReflectorStore { return neverStaged{s} }},
	{"a relist shows nothing before its commit", "before its commit", func(s goodStore) ReflectorStore { return showsParts{s} }},
	{"a relist that is aborted changes nothing", "was aborted", func(s goodStore) ReflectorStore { return commitsAborted{s} }},
	{"a part retains and deletes objects", "keeps a", func(s goodStore) ReflectorStore { return keepsNothing{s} }},
	{"a part retains and deletes objects", "takes back d", func(s goodStore) ReflectorStore { return takesNothingBack{s} }},
	{"a part accepts objects with a key and rejects the others", "did not reject", func(s goodStore) ReflectorStore { return rejectsNothing{s} }},
}
