package guarantees

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

// G7: whatever a program writes to a store during a list, unlisted objects are removed at its end, and
// listed ones are in the store, since the last to commit decides. Fails if an object counts as listed
// because it reuses a listed object's entry.
func TestG7WritesOfOthersDuringAListDoNotCountAsListed(t *testing.T) {
	t.Run("another object takes the place of a listed one", func(t *testing.T) {
		s := cache.NewStore(cache.MetaNamespaceKeyFunc)
		must(t, s.Replace(items("1", "1", "2", "1"), "1"))
		list := testReplacement{t, s.(cache.Replacer).BeginReplace(cache.ReplaceOptions{})}
		list.add(items("1", "1", "2", "1")...)
		must(t, s.Delete(podAt("a", "1", "1")), s.Add(podAt("a", "3", "2")))
		list.commit("3")
		assert.Equal(t, map[string]string{"a/1": "1", "a/2": "1"}, contents(s))
	})
	t.Run("most objects go, and the store shrinks", func(t *testing.T) {
		const all, listed = 4000, 10
		s := cache.NewStore(cache.MetaNamespaceKeyFunc)
		var objects []any
		for i := range all {
			objects = append(objects, podAt("a", itoa(i), "1"))
		}
		must(t, s.Replace(objects, "1"))
		list := testReplacement{t, s.(cache.Replacer).BeginReplace(cache.ReplaceOptions{})}
		list.add(objects[all-2*listed : all-listed]...) // before the entries that go
		for _, obj := range objects[:all-2*listed] {
			must(t, s.Delete(obj))
		}
		list.commit("3")
		want := map[string]string{}
		for i := all - 2*listed; i < all-listed; i++ {
			want["a/"+itoa(i)] = "1"
		}
		assert.Equal(t, want, contents(s))
	})
	t.Run("another list is committed during the commit", func(t *testing.T) {
		s, committing := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), false
		must(t, s.Replace(items("1", "1"), "1"))
		list := testReplacement{t, s.(cache.Replacer).BeginReplace(cache.ReplaceOptions{})}
		list.add(items("2", "2")...)
		must(t, s.AddIndexers(cache.Indexers{"added": func(any) ([]string, error) {
			if committing {
				committing = false
				must(t, s.Replace(items("3", "1"), "3"))
			}
			return nil, nil
		}}))
		committing = true
		list.commit("4")
		assert.False(t, committing, "the commit has computed the values for the added index")
		assert.Equal(t, map[string]string{"a/2": "2"}, contents(s))
	})
}

// G7: a listed object is in the store after the commit, whatever others have done to it in between.
// Fails if a list only remembers which entries it has confirmed.
func TestG7TheLastToCommitDecides(t *testing.T) {
	others := map[string]func(t *testing.T, s cache.Store){
		"deletes": func(t *testing.T, s cache.Store) { must(t, s.Delete(podAt("a", "1", "1"))) },
		"deletes and adds": func(t *testing.T, s cache.Store) {
			must(t, s.Delete(podAt("a", "1", "1")), s.Add(podAt("a", "1", "1")))
		},
		"updates": func(t *testing.T, s cache.Store) { must(t, s.Update(podAt("a", "1", "2"))) },
		"updates twice and deletes": func(t *testing.T, s cache.Store) {
			must(t, s.Update(podAt("a", "1", "2")), s.Update(podAt("a", "1", "3")), s.Delete(podAt("a", "1", "3")))
		},
		"replaces":      func(t *testing.T, s cache.Store) { must(t, s.Replace(items("2", "1"), "2")) },
		"replaces with": func(t *testing.T, s cache.Store) { must(t, s.Replace(items("1", "3", "3", "1"), "2")) },
		"commits an earlier list": func(t *testing.T, s cache.Store) {
			earlier := testReplacement{t, s.(cache.Replacer).BeginReplace(cache.ReplaceOptions{})}
			earlier.add(items("2", "1")...)
			earlier.commit("2")
		},
	}
	for name, write := range others {
		for _, isFirst := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", first list", false: ", relist"}[isFirst], func(t *testing.T) {
				s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
				if !isFirst {
					must(t, s.Replace(items("1", "1", "2", "1"), "1"))
				}
				list := testReplacement{t, s.(cache.Replacer).BeginReplace(cache.ReplaceOptions{})}
				list.add(items("1", "1", "2", "1")...)
				write(t, s)
				list.commit("4")
				want := map[string]string{"a/1": "1", "a/2": "1"}
				assert.Equal(t, want, contents(s))
				keys, err := s.IndexKeys(cache.NamespaceIndex, "a")
				must(t, err)
				assert.Equal(t, []string{"a/1", "a/2"}, keys)
				assert.Equal(t, "4", s.LastStoreSyncResourceVersion())
			})
		}
	}
}

// G7: an object that a list has and that is refused is quarantined after the commit, whatever others
// have done in between. Fails if a deletion by others makes its key read as absent.
func TestG7ARefusedObjectOfAListIsQuarantinedAfterIt(t *testing.T) {
	others := map[string]func(t *testing.T, s cache.Store){
		"deletes":      func(t *testing.T, s cache.Store) { must(t, s.Delete(podAt("a", "1", "1"))) },
		"replaces all": func(t *testing.T, s cache.Store) { must(t, s.Replace(nil, "2")) },
		"updates and deletes": func(t *testing.T, s cache.Store) {
			must(t, s.Update(podAt("a", "1", "3")), s.Delete(podAt("a", "1", "3")))
		},
	}
	for name, write := range others {
		for _, isFirst := range []bool{true, false} {
			for _, isStaged := range []bool{true, false} {
				t.Run(fmt.Sprint(name, "/first=", isFirst, "/staged=", isStaged), func(t *testing.T) {
					s := newTagStore()
					if !isFirst {
						must(t, s.Replace(items("1", "1", "2", "1"), "1"))
					}
					list := s.BeginReplace(cache.ReplaceOptions{Staged: isStaged})
					refused := []any{tagged(podAt("a", "1", "2"), "bad")}
					rejected, err := list.Add(bg, cache.ReplacementPart{Items: refused})
					require.NoError(t, err)
					require.Len(t, rejected, 1)
					write(t, s)
					_, exists, err := s.GetByKey("a/1")
					require.NoError(t, err)
					require.False(t, exists, "the last to commit is the other one")

					must(t, list.Commit(bg, "4"))
					_, _, err = s.GetByKey("a/1")
					require.ErrorIs(t, err, cache.ErrQuarantined)
					var quarantined *cache.ObjectError
					require.ErrorAs(t, err, &quarantined)
					assert.Equal(t, "2", quarantined.ResourceVersion)

					must(t, s.Update(podAt("a", "1", "5")))
					must(t, s.Delete(podAt("a", "1", "5")))
					_, _, err = s.GetByKey("a/1")
					require.NoError(t, err)
				})
			}
		}
	}
}

// G7: a state that others have stored in place of a refused one stays. The key is quarantined all the
// same, unless that state is the listed one or newer. Fails if a write by others counts as the list's.
func TestG7AStateThatOthersStoreInPlaceOfARefusedOneStays(t *testing.T) {
	for version, isQuarantined := range map[string]bool{"1": true, "2": false, "3": false} {
		s := newTagStore()
		list := s.BeginReplace(cache.ReplaceOptions{})
		_, err := list.Add(bg, cache.ReplacementPart{Items: []any{tagged(podAt("a", "1", "2"), "bad")}})
		require.NoError(t, err)
		must(t, s.Update(podAt("a", "1", version)))
		must(t, list.Commit(bg, "4"))
		assert.Equal(t, map[string]string{"a/1": version}, contents(s))

		status := cache.NewReflectorWithOptions(newSource(t), &object{}, s, cache.ReflectorOptions{}).Status()
		assert.Equal(t, isQuarantined, len(status.Quarantined) == 1, version)
	}
}

// G7: of several states that a list has of a key, one that fails for an index added meanwhile does not
// count if a later one is applied. Fails if the key stays quarantined.
func TestG7ARefusedStateDoesNotCountIfTheListHasALaterOne(t *testing.T) {
	for _, isDeleted := range []bool{true, false} {
		s := newTagStore()
		must(t, s.Replace(nil, "1"))
		list := s.BeginReplace(cache.ReplaceOptions{})
		add := func(part cache.ReplacementPart) {
			rejected, err := list.Add(bg, part)
			require.NoError(t, err)
			require.Empty(t, rejected)
		}
		add(cache.ReplacementPart{Items: []any{podAt("a", "1", "2")}})
		add(cache.ReplacementPart{Deleted: []any{podAt("a", "1", "3")}})
		if !isDeleted {
			add(cache.ReplacementPart{Items: []any{podAt("a", "1", "4")}})
		}
		must(t, s.AddIndexers(cache.Indexers{"refuses 2": func(obj any) ([]string, error) {
			if obj.(*object).ResourceVersion == "2" {
				return nil, errBoom
			}
			return nil, nil
		}}))
		require.ErrorContains(t, list.Commit(bg, "4"), "a/1")

		_, exists, err := s.GetByKey("a/1")
		require.NoError(t, err)
		assert.Equal(t, !isDeleted, exists)
		status := cache.NewReflectorWithOptions(newSource(t), &object{}, s, cache.ReflectorOptions{}).Status()
		assert.Empty(t, status.Quarantined)
	}
}

// G7: an object that a list has refused or retained, and that a later part has in its stored state, is
// listed in that state. Fails if the key still counts as retained: then the deletion by others stays.
func TestG7AnUnchangedObjectCountsAfterARefusedState(t *testing.T) {
	refused := tagged(podAt("a", "1", "2"), "bad")
	parts := map[string]cache.ReplacementPart{
		"refused":  {Items: []any{refused}},
		"retained": {Retain: []any{refused}},
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) {
			s := newTagStore()
			must(t, s.Replace(items("1", "1"), "1"))
			list := s.BeginReplace(cache.ReplaceOptions{})
			_, err := list.Add(bg, part)
			require.NoError(t, err)
			must(t, s.Update(podAt("a", "1", "3")))
			_, err = list.Add(bg, cache.ReplacementPart{Items: items("1", "3")})
			require.NoError(t, err)
			must(t, s.Delete(podAt("a", "1", "3")))
			must(t, list.Commit(bg, "4"))
			assert.Equal(t, map[string]string{"a/1": "3"}, contents(s))
			status := cache.NewReflectorWithOptions(newSource(t), &object{}, s, cache.ReflectorOptions{}).Status()
			assert.Empty(t, status.Quarantined)
		})
	}
}

// G7: a Replace that a key function of another one makes is the first to commit.
func TestG7AReplaceInsideAReplaceCommitsFirst(t *testing.T) {
	var s cache.Store
	isArmed := false
	s = cache.NewStore(func(obj any) (string, error) {
		if isArmed && nameOf(obj) == "a/40" {
			isArmed = false
			must(t, s.Replace(items("40", "1"), "2"))
		}
		return cache.MetaNamespaceKeyFunc(obj)
	})
	var list []any
	for i := range 41 { // more than are prepared at a time
		list = append(list, podAt("a", itoa(i), "1"))
	}
	must(t, s.Replace(slices.Clone(list), "1"))
	isArmed = true
	must(t, s.Replace(slices.Clone(list), "3"))
	assert.Len(t, contents(s), len(list))
}
