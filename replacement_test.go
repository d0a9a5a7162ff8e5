package cache

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// replacing is a replacement under test.
type replacing struct {
	*testing.T
	Replacement
}

func begin(t *testing.T, s *cache) replacing {
	return replacing{t, s.BeginReplace(ReplaceOptions{})}
}

// items passes on objects of which none is rejected.
func (r replacing) items(items ...any) {
	r.Helper()
	rejected, err := r.Add(bg, ReplacementPart{Items: items})
	require.NoError(r, err)
	require.Empty(r, rejected)
}

func (r replacing) commit(version string) {
	r.Helper()
	require.NoError(r, r.Commit(bg, version))
}

// rejects passes on a part and returns key and stage of the rejected objects.
func (r replacing) rejects(part ReplacementPart) []string {
	r.Helper()
	rejected, err := r.Add(bg, part)
	require.NoError(r, err)
	var notified []string
	for _, bad := range rejected {
		notified = append(notified, bad.Key+" "+string(bad.Stage))
	}
	return notified
}

// G5, G11: a first list shows as it comes, and the version stays empty until it
// is whole. Fails if Part stages a first list or if show sets a version.
func TestAFirstListShowsPartByPart(t *testing.T) {
	s := newTagStore()
	require.NoError(t, s.Add(podAt("a", "stale", "1")))
	r := begin(t, s)
	r.items(tagged(podAt("a", "1", "1"), "x"), podAt("a", "2", "2"))
	assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2", "a/stale": "1"}, contents(s))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "x"))
	r.items(podAt("b", "3", "3"))
	assert.Len(t, s.List(), 4)
	assert.Empty(t, s.LastStoreSyncResourceVersion())
	r.commit("9")
	assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2", "b/3": "3"}, contents(s))
	assert.Equal(t, "9", s.LastStoreSyncResourceVersion())
}

func TestAnAbortedFirstListStaysUntilTheNextCommit(t *testing.T) {
	s := newTagStore()
	r := begin(t, s)
	first := podAt("a", "1", "1")
	r.items(first, podAt("a", "2", "2"))
	r.Abort()
	assert.Len(t, s.List(), 2)
	assert.Empty(t, s.LastStoreSyncResourceVersion())

	r = begin(t, s)
	r.items(podAt("a", "1", "1"), podAt("a", "3", "3"))
	assert.Len(t, s.List(), 3, "the next one is still the first")
	got, _, _ := s.GetByKey("a/1")
	assert.Same(t, first, got, "unchanged")
	r.commit("4")
	assert.Equal(t, map[string]string{"a/1": "1", "a/3": "3"}, contents(s))
}

// An object with the recorded UID and version is neither transformed nor replaced;
// anything else is. Fails if unchanged leaves out one of the two, or takes two
// empty ones for equal.
func TestAnUnchangedObjectStaysThroughARelist(t *testing.T) {
	calls := 0
	s := newTagStore(WithTransformer(func(obj any) (any, error) {
		calls++
		// a transform may drop the compared fields
		return pod(obj.(*object).Namespace, obj.(*object).Name), nil
	}))
	recreated := podAt("a", "1", "1")
	recreated.UID = "another"
	noUID := podAt("a", "1", "1")
	noUID.UID = ""
	for name, c := range map[string]struct {
		before, after *object
		same          bool
	}{
		"same":            {podAt("a", "1", "1"), podAt("a", "1", "1"), true},
		"another version": {podAt("a", "1", "1"), podAt("a", "1", "2"), false},
		"older version":   {podAt("a", "1", "2"), podAt("a", "1", "1"), false},
		"another UID":     {podAt("a", "1", "1"), recreated, false},
		"no UID":          {noUID, noUID.DeepCopy(), false},
		"no version":      {podAt("a", "1", ""), podAt("a", "1", ""), false},
	} {
		for way, relist := range map[string]func(obj *object){
			"Replace": func(obj *object) { require.NoError(t, s.Replace([]any{obj}, "5")) },
			"parts": func(obj *object) {
				r := begin(t, s)
				r.items(obj)
				r.commit("5")
			},
		} {
			require.NoError(t, s.Replace([]any{c.before}, "4"))
			held, _, _ := s.GetByKey("a/1")
			calls = 0
			relist(c.after)
			got, _, _ := s.GetByKey("a/1")
			assert.Equal(t, c.same, held == got, "%s by %s", name, way)
			assert.Equal(t, c.same, calls == 0, "%s by %s", name, way)
			require.NoError(t, s.Replace(nil, "6"))
		}
	}
	require.NoError(t, s.Update(podAt("a", "1", "1")))
	calls = 0
	require.NoError(t, s.Update(podAt("a", "1", "1")))
	assert.Equal(t, 1, calls, "only a relist leaves objects alone")
}

func TestOfSeveralStatesInAListTheNewestOneCounts(t *testing.T) {
	for name, first := range map[string]bool{"first list": true, "relist": false} {
		s := newTagStore()
		if !first {
			require.NoError(t, s.Replace([]any{podAt("a", "1", "1")}, "1"))
		}
		r := begin(t, s)
		r.items(podAt("a", "1", "2"), podAt("a", "1", "3"))
		r.items(podAt("a", "2", "4"))
		r.items(podAt("a", "2", "5"), podAt("a", "1", "1"))
		r.commit("6")
		assert.Equal(t, map[string]string{"a/1": "3", "a/2": "5"}, contents(s), name)
	}
}

// Fails if the end of a list applies the first of two listed states of an object that was created
// again in between.
func TestTheNewestListedStateCountsIfTheObjectWasRecreatedMeanwhile(t *testing.T) {
	s := newTagStore()
	require.NoError(t, s.Replace([]any{podAt("a", "1", "3")}, "3"))
	r := begin(t, s)
	r.items(podAt("a", "1", "5"))
	require.NoError(t, s.Delete(podAt("a", "1", "6")))
	require.NoError(t, s.Add(podAt("a", "1", "7")))
	r.items(podAt("a", "1", "7"))
	r.commit("8")
	assert.Equal(t, map[string]string{"a/1": "7"}, contents(s))
}

func TestAPartReturnsWhatItRejects(t *testing.T) {
	for name, first := range map[string]bool{"first list": true, "relist": false} {
		t.Run(name, func(t *testing.T) {
			s := newTagStore()
			previous := []any{podAt("a", "1", "1"), podAt("a", "2", "1"), podAt("a", "3", "1")}
			if first {
				for _, obj := range previous {
					require.NoError(t, s.Add(obj))
				}
			} else {
				require.NoError(t, s.Replace(previous, "1"))
			}
			r := begin(t, s)
			notified := r.rejects(ReplacementPart{
				Items:   []any{tagged(podAt("a", "1", "2"), "bad"), podAt("a", "5", "2"), nil, pod("", "")},
				Retain:  []any{podAt("a", "2", "9"), nil, pod("", "")},
				Deleted: []any{7},
			})
			assert.ElementsMatch(t, []string{"a/1 index", " metadata", " key", " key"}, notified)
			assert.Equal(t, []string{"a/1"}, heldKeys(s))
			r.commit("3")
			assert.Equal(t, map[string]string{"a/1": "1", "a/2": "1", "a/5": "2"}, contents(s))
			assert.Equal(t, []string{"a/1"}, heldKeys(s))
		})
	}
}

// What was kept by name stays through the commit, what a stream has deleted since
// does not, and of both in one part the deletion counts.
func TestAReplacementKeepsAndRemovesKeys(t *testing.T) {
	for name, first := range map[string]bool{"first list": true, "relist": false} {
		t.Run(name, func(t *testing.T) {
			s := newTagStore()
			for _, key := range []string{"1", "2", "3", "4"} {
				require.NoError(t, s.Add(podAt("a", key, "1")))
			}
			require.Error(t, s.Update(tagged(podAt("a", "1", "2"), "bad")))
			require.Error(t, s.Update(tagged(podAt("a", "2", "2"), "bad")))
			if !first {
				s.scope.committed = true
			}
			r := begin(t, s)
			r.items(podAt("a", "3", "1"), podAt("a", "5", "2"))
			assert.Empty(t, r.rejects(ReplacementPart{
				Items:   []any{podAt("a", "6", "2")},
				Retain:  []any{pod("a", "1"), pod("a", "2"), pod("a", "5")},
				Deleted: []any{pod("a", "2"), pod("a", "3"), pod("a", "6")},
			}))
			r.items(podAt("a", "6", "3"))
			r.commit("4")
			assert.Equal(t, map[string]string{"a/1": "1", "a/5": "2", "a/6": "3"}, contents(s))
			assert.Equal(t, []string{"a/1"}, heldKeys(s), "kept stays quarantined, removed does not")
		})
	}
}

func TestARemovedKeyShowsAtOnceInAFirstList(t *testing.T) {
	s := newTagStore()
	r := begin(t, s)
	r.items(podAt("a", "1", "1"), podAt("a", "2", "1"))
	assert.Equal(t, []string{"a/3 index"}, r.rejects(ReplacementPart{
		Items:   []any{tagged(podAt("a", "3", "1"), "bad")},
		Deleted: []any{pod("a", "1"), pod("a", "3")},
	}))
	assert.Equal(t, map[string]string{"a/2": "1"}, contents(s))
	assert.Empty(t, s.quarantinedObjects())
}

// An index that is added while a relist is under way sees the prepared objects
// too; one that fails for it is quarantined at the commit. Fails if publish does not
// bring the values up to date.
func TestAnIndexAddedDuringARelist(t *testing.T) {
	s := NewIndexer(MetaNamespaceKeyFunc, nil).(*cache)
	old := []any{tagged(podAt("a", "1", "1"), "old"), podAt("a", "2", "1")}
	require.NoError(t, s.Replace(old, "1"))
	r := begin(t, s)
	r.items(
		tagged(podAt("a", "1", "2"), "new"),
		tagged(podAt("a", "2", "2"), "bad"),
		tagged(podAt("a", "3", "2"), "new"),
	)
	require.NoError(t, s.AddIndexers(Indexers{tagIndex: byTag}))
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "old"))
	objects, rest := splitObjectErrors(r.Commit(bg, "3"))
	require.NoError(t, rest)
	require.Len(t, objects, 1)
	assert.Equal(t, "a/2", objects[0].Key)
	assert.Equal(t, map[string]string{"a/1": "2", "a/2": "1", "a/3": "2"}, contents(s))
	assert.Equal(t, []string{"a/1", "a/3"}, keysIn(t, s, tagIndex, "new"))
	assert.Empty(t, keysIn(t, s, tagIndex, "old"))
	assert.Equal(t, []string{"a/2"}, heldKeys(s))
	assert.Equal(t, "3", s.LastStoreSyncResourceVersion())
}

func TestErrorsOfAForeignStoreAreDistinguished(t *testing.T) {
	object := &ObjectError{Key: "k", Stage: stageIndex, Err: errBoom}
	key := KeyError{Obj: pod("a", "b"), Err: errBoom}
	objects, other := splitObjectErrors(errors.Join(object, fmt.Errorf("wrapped: %w", key), errBoom))
	require.Len(t, objects, 2)
	assert.Equal(t, "k", objects[0].Key)
	assert.Equal(t, "a/b", objects[1].Key)
	assert.ErrorIs(t, other, errBoom)
	objects, other = splitObjectErrors(object)
	assert.Len(t, objects, 1)
	assert.NoError(t, other)
}

// What a store that is not ours is given for a deletion that could not be decoded.

// The error of a store that is not ours counts, also if another call would have
// succeeded. Fails if any error makes the reflector try again.
func TestAForeignStoresRefusalOfAnUndecodedDeletionIsNotSwallowed(t *testing.T) {
	store := &refusesOnce{errs: []error{errBoom}}
	assert.ErrorIs(t, deleteFrom(store, &change{received: received{object: undecoded(podAt("a", "1", "6"))}}), errBoom)
	assert.Equal(t, 1, store.calls)
	store = &refusesOnce{errs: []error{KeyError{Err: errors.New("no tombstones")}, errBoom}}
	assert.ErrorIs(t, deleteFrom(store, &change{received: received{object: undecoded(podAt("a", "1", "6"))}}), errBoom)
	assert.Equal(t, 2, store.calls)
}

type refusesOnce struct {
	ReflectorStore
	errs  []error
	calls int
}

func (r *refusesOnce) Delete(any) error {
	if r.calls++; r.calls > len(r.errs) {
		return nil
	}
	return r.errs[r.calls-1]
}

// Fails if the older state of a key that is listed twice is stored because the transform has
// dropped the newer one.
func TestAnOlderStateIsNotStoredInPlaceOfOneThatIsNotWanted(t *testing.T) {
	dropMarked := func(obj any) (any, error) {
		if obj.(*object).Labels["drop"] == "yes" {
			return nil, nil
		}
		return obj, nil
	}
	s := NewIndexer(MetaNamespaceKeyFunc, nil, WithTransformer(dropMarked)).(*cache)
	require.NoError(t, s.Replace([]any{podAt("a", "z", "1")}, "2"))
	newer := podAt("a", "1", "9")
	newer.Labels = map[string]string{"drop": "yes"}
	r := begin(t, s)
	r.items(newer)
	r.items(podAt("a", "1", "8"))
	r.commit("10")
	require.Empty(t, contents(s))
}

// Fails if a part of deletions is taken for items, which have each key once.
func TestADeletionAfterTheListedStateKeepsBoth(t *testing.T) {
	s := NewIndexer(MetaNamespaceKeyFunc, nil).(*cache)
	require.NoError(t, s.Replace([]any{podAt("a", "z", "1")}, "1"))
	r := s.BeginReplace(ReplaceOptions{}).(*storeReplacement)
	for _, version := range []string{"2", "3"} {
		_, err := r.Add(t.Context(), ReplacementPart{Items: []any{podAt("a", "1", version)}})
		require.NoError(t, err)
	}
	_, err := r.Add(t.Context(), ReplacementPart{Deleted: []any{podAt("a", "1", "4")}})
	require.NoError(t, err)
	kept := 0
	r.staged.each(func(c *change) {
		if !c.prepared.unchanged {
			kept++
		}
	})
	require.Equal(t, 2, kept, "the addition of version 3 and its deletion")
}

// Fails if an item is compared with the deletion of its key in an earlier part of the list, which
// is no listed state.
func TestAnItemAfterItsDeletionInTheSameListIsStored(t *testing.T) {
	for name, hasList := range map[string]bool{"first list": false, "relist": true} {
		t.Run(name, func(t *testing.T) {
			s := newTagStore()
			if hasList {
				require.NoError(t, s.Replace([]any{podAt("a", "1", "1")}, "1"))
			}
			r := begin(t, s)
			r.items(podAt("a", "1", "1"))
			_, err := r.Add(t.Context(), ReplacementPart{Deleted: []any{podAt("a", "1", "5")}})
			require.NoError(t, err)
			r.items(podAt("a", "1", "1"))
			require.Empty(t, r.Replacement.(*storeReplacement).takeDuplicates())
			r.commit("6")
			require.Equal(t, map[string]string{"a/1": "1"}, contents(s))
		})
	}
}
