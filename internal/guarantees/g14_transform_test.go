package guarantees

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// A store with a transformer transforms each object once.
func TestG14AStoreWithATransformerTransformsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		transform := func(obj any) (any, error) { runs++; return obj, nil }
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		r := newRig(t, source, func(c *cache.Config) {
			c.Store = cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(transform))
		})
		r.run()
		synctest.Wait()
		assert.Equal(t, 2, runs)
		r.stop()
	})
}

// G14: if a transform returns nil for a stored object, the object is deleted.
func TestG14ATransformThatReturnsNilDeletesTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, func(c *cache.Config) {
			c.Transform = func(obj any) (any, error) {
				if isBad(obj) {
					return nil, nil
				}
				return obj, nil
			}
		})
		r.run()
		synctest.Wait()
		r.handler.take()
		require.NoError(t, source.Apply(bad(pod("a", "1"))))
		synctest.Wait()
		assert.Equal(t, []string{"tombstone a/1"}, r.handler.take())
		assert.Empty(t, r.indexer.ListKeys())
		assert.Empty(t, r.errors.all())
		require.NoError(t, source.Apply(labelled(pod("a", "1"), "back")))
		synctest.Wait()
		assert.Equal(t, []string{"add a/1@3"}, r.handler.take())
		r.stop()
	})
}

// G14: the options of a Config apply to each of several namespaces.
func TestG14OptionsHoldForEachNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		transformed := map[string]int{}
		resyncs := 0
		names := map[string]bool{}
		r := newNamespaceRig(t, false, func(c *cache.Config) {
			c.Transform = func(obj any) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				transformed[nameOf(obj)]++
				return obj, nil
			}
			c.FullResyncPeriod = time.Hour
			c.ShouldResync = func() bool {
				mu.Lock()
				defer mu.Unlock()
				resyncs++
				return true
			}
			c.WatchListPageSize = 1
			c.RecreateAsUpdate = true
			c.WatchErrorHandler = func(r *cache.Reflector, _ error) {
				mu.Lock()
				defer mu.Unlock()
				names[r.Name()] = true
			}
		})
		r.run()
		sleep(time.Minute)
		assert.Equal(t, map[string]int{"a/1": 1, "a/2": 1, "b/1": 1, "b/2": 1, "c/1": 1, "c/2": 1}, transformed)
		r.handler.take()
		sleep(time.Hour)
		assert.Equal(t, 1, resyncs)
		assert.ElementsMatch(t, []string{
			"update a/1@1", "update a/2@2", "update b/1@1", "update b/2@2", "update c/1@1", "update c/2@2",
		}, r.handler.take(), "each once")
		for namespace, source := range r.sources {
			assert.Equal(t, 2, source.ListCalls(), "pages of one object")
			_, err := source.DeleteSilently(namespace, "1")
			require.NoError(t, err)
			r.apply(pod(namespace, "1"))
			source.BreakWatches(cachetest.ErrExpired())
		}
		sleep(time.Minute)
		assert.ElementsMatch(t, []string{"update a/1@4", "update b/1@4", "update c/1@4"}, r.handler.take(), "recreated")
		assert.Equal(t, map[string]bool{"test/a": true, "test/b": true, "test/c": true}, names)
		assert.Equal(t, "test", r.status().Name)
		r.stop()
	})
}
