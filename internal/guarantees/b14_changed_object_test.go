package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/mutation"
)

// B14: modifying a stored object, which is not allowed, breaks no index: a lookup finds the
// source's object, never a nil, and the detector reports the key and the field.
func TestB14AChangedObjectLeavesNoDanglingIndexEntryAndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, labelled(pod("a", "1"), "x"), labelled(pod("a", "2"), "x")), func(c *cache.InformerConfig[*object]) {
			c.Indexes = cache.TypedIndexers[*object]{"v": func(o *object) ([]string, error) { return []string{o.Labels["v"]}, nil }}
			c.DetectMutations = mutation.Options{Period: time.Hour}.New
		})
		r.run()
		synctest.Wait()
		for _, name := range []string{"a/1", "a/2"} {
			obj, _ := r.inf.Lookup(name)
			obj.Labels["v"] = "changed"
		}
		must(t, r.source.Apply(labelled(pod("a", "1"), "y")))
		_, err := r.source.Delete("a", "2")
		must(t, err)
		synctest.Wait()
		require.Len(t, r.heard.all(), 1, "a replaced object is compared at once")
		sleep(time.Hour)
		require.Len(t, r.heard.all(), 2, "and a removed one at the next comparison")
		named := map[string]bool{}
		for _, err := range r.heard.all() {
			var mutated *cache.MutatedObjectError
			require.ErrorAs(t, err, &mutated)
			named[mutated.Key] = true
			assert.ErrorContains(t, err, "metadata.labels")
		}
		assert.Equal(t, map[string]bool{"a/1": true, "a/2": true}, named)
		for value, want := range map[string]int{"x": 0, "changed": 0, "y": 1} {
			found, err := r.inf.Shared().GetIndexer().ByIndex("v", value)
			must(t, err)
			assert.Len(t, found, want, value)
			assert.NotContains(t, found, nil)
		}
		r.stop()
	})
}

// B14: a reader that modifies a shared object leaves no dangling index entry. Fails if old index
// values are recomputed from the object instead of being kept.
func TestB14AChangedObjectLeavesNoDanglingIndexEntry(t *testing.T) {
	for name, finish := range map[string]func(s fullStore) error{
		"Update":  func(s fullStore) error { return s.Update(tagged(podAt("a", "1", "2"), "new")) },
		"Delete":  func(s fullStore) error { return s.Delete(pod("a", "1")) },
		"Replace": func(s fullStore) error { return s.Replace(nil, "2") },
	} {
		s := newTagStore()
		require.NoError(t, s.Add(tagged(podAt("a", "1", "1"), "old")))
		shared, _, _ := s.GetByKey("a/1")
		shared.(*object).Annotations["tags"] = "changed"
		assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "old"), "the index has the values the object came with")
		require.NoError(t, finish(s))
		assert.Empty(t, keysIn(t, s, tagIndex, "old"), name)
		assert.Empty(t, keysIn(t, s, tagIndex, "changed"), name)
		assert.NotContains(t, s.ListIndexFuncValues(tagIndex), "old", name)
	}
}
