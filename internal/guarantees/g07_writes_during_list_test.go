package guarantees

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache"
)

// G7: whatever a program writes to a store during a list, unlisted objects are removed at its end, and
// listed ones stay. Fails if an object counts as listed because it reuses a listed object's entry.
func TestG7WritesOfOthersDuringAListDoNotCountAsListed(t *testing.T) {
	t.Run("another object takes the place of a listed one", func(t *testing.T) {
		s := cache.NewStore(cache.MetaNamespaceKeyFunc)
		must(t, s.Replace(items("1", "1", "2", "1"), "1"))
		list := testReplacement{t, s.(cache.Replacer).BeginReplace(cache.ReplaceOptions{})}
		list.add(items("1", "1", "2", "1")...)
		must(t, s.Delete(podAt("a", "1", "1")), s.Add(podAt("a", "3", "2")))
		list.commit("3")
		assert.Equal(t, map[string]string{"a/2": "1"}, contents(s))
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
