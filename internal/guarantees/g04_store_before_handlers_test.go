package guarantees

import (
	rand "math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

// G4: whenever a handler is notified, the store and its indexes have the change: by list, watch and
// relist. The store may be ahead. Fails if the informer publishes before it writes, or updates an
// index later.
func TestG4StoreAndIndexesChangeBeforeHandlersAreNotified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(5, 5))
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), func(c *cache.InformerConfig[*object]) {
			c.Indexes = cache.TypedIndexers[*object]{"v": func(o *object) ([]string, error) { return []string{o.Labels["v"]}, nil }}
		})
		store := r.inf.Shared().GetIndexer()
		notified := 0
		isThere := func(obj any) {
			notified++
			key, version := nameOf(obj), versionOf(obj)
			stored, exists, err := store.GetByKey(key)
			require.NoError(t, err)
			if !exists {
				return // the store is ahead
			}
			assert.GreaterOrEqual(t, versionOf(stored), version, "%s", key)
			indexed, err := store.IndexKeys("v", stored.(*object).Labels["v"])
			require.NoError(t, err)
			if again, _, _ := store.GetByKey(key); again == stored {
				assert.Contains(t, indexed, key)
			}
		}
		r.handle(cache.ResourceEventHandlerFuncs{
			AddFunc:    isThere,
			UpdateFunc: func(_, obj any) { isThere(obj) },
			DeleteFunc: func(obj any) {
				notified++
				if stored, exists, _ := store.GetByKey("a/" + lastName(obj)); exists {
					assert.Greater(t, versionOf(stored), versionOf(lastObject(obj)), "deleted, and still there")
				}
			},
		})
		r.run()
		synctest.Wait() // for the watch that the first relist breaks
		for i := range 2000 {
			name := itoa(random.IntN(5))
			if random.IntN(4) == 0 {
				_, _ = r.source.Delete("a", name)
			} else {
				must(t, r.source.Apply(labelled(pod("a", name), itoa(i%7))))
			}
			if i%500 == 0 {
				r.relist()
			}
		}
		synctest.Wait()
		assert.Greater(t, notified, 1000)
		r.stop()
	})
}

func lastObject(obj any) any {
	if tombstone, lost := obj.(cache.DeletedFinalStateUnknown); lost {
		return tombstone.Obj
	}
	return obj
}

func lastName(obj any) string { return lastObject(obj).(*object).Name }
