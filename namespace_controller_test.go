package cache

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// Each namespace is listed and watched by itself, never all of them, and what is
// of no namespace that was asked for is not mirrored.
func TestSeveralNamespacesOfOneServerAreMirroredIntoOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("b", "1"), pod("b", "2"), pod("ab", "1"))
		r := newRig(t, source, func(c *Config) {
			c.ListerWatcher = nil
			c.Namespaces = map[string]ListerWatcher{"a": source.Namespace("a"), "b": source.Namespace("b")}
		})
		r.run()
		synctest.Wait()
		assert.Equal(t, map[string]string{"a/1": "1", "b/1": "2", "b/2": "3"}, r.versions())
		assert.ElementsMatch(t, []string{"add a/1@1 initial", "add b/1@2 initial", "add b/2@3 initial"}, r.handler.take())
		assert.True(t, r.ctlr.HasSynced())
		assert.Equal(t, "4", r.ctlr.LastSyncResourceVersion())

		require.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), pod("ab", "2")))
		_, err := source.Delete("b", "1")
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, map[string]string{"a/1": "5", "b/2": "3"}, r.versions())
		assert.ElementsMatch(t, []string{"update a/1@5", "delete b/1"}, r.handler.take())
		assert.Equal(t, "5", r.ctlr.LastSyncResourceVersion(), "a has been told of nothing newer")
		source.SendBookmarks()
		synctest.Wait()
		assert.Equal(t, "7", r.ctlr.LastSyncResourceVersion())
		asked := map[string]int{}
		for _, request := range source.Requests() {
			asked[request.Namespace]++
		}
		assert.Equal(t, map[string]int{"a": 2, "b": 2}, asked, "a list and a watch of each")
		r.stop()
	})
}

// G7: a relist deletes what its namespace lacks and nothing else; the others are
// not even asked. Fails if a commit goes beyond its view, or if an expired watch
// makes more than its own namespace list.
func TestG7ARelistDeletesOnlyWhatIsOfItsNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, nil)
		r.run()
		synctest.Wait()
		r.equalsSources("a", "b", "c")
		r.handler.take()
		for _, namespace := range []string{"a", "b"} {
			_, err := r.sources[namespace].DeleteSilently(namespace, "1")
			require.NoError(t, err)
			r.sources[namespace].ResetRequests()
		}
		r.sources["a"].BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		r.equalsSources("a", "c")
		assert.Contains(t, r.versions(), "b/1", "nobody could know")
		assert.Equal(t, []string{"tombstone a/1"}, r.handler.take())
		assert.Equal(t, 1, r.sources["a"].ListCalls())
		assert.Equal(t, 1, r.sources["a"].WatchCalls())
		assert.Empty(t, r.sources["b"].Requests())

		r.sources["b"].BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		r.equalsSources("a", "b", "c")
		r.stop()
	})
}

func TestTheLastObjectOfANamespaceGoesAlone(t *testing.T) {
	for name, seen := range map[string]bool{"by an event": true, "by a relist": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newNamespaceRig(t, nil)
				r.run()
				synctest.Wait()
				for _, object := range []string{"1", "2"} {
					if seen {
						_, err := r.sources["b"].Delete("b", object)
						require.NoError(t, err)
						continue
					}
					_, err := r.sources["b"].DeleteSilently("b", object)
					require.NoError(t, err)
				}
				if !seen {
					r.sources["b"].BreakWatches(cachetest.ErrExpired())
				}
				sleep(time.Minute)
				r.equalsSources("a", "b", "c")
				assert.Len(t, r.versions(), 4)
				assert.Empty(t, InNamespace(r.indexer, "b").ListKeys())
				assert.Equal(t, "4", r.in("b").AppliedVersion, "empty is a state like any other")
				r.stop()
			})
		})
	}
}

// G11: each namespace has its own version; the store's is the lowest.
func TestG11TheStoresVersionIsTheLowestOfItsNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newNamespaceRig(t, nil)
		r.sources["b"].Advance(40)
		r.sources["c"].Advance(7)
		r.sources["c"].HangLists(1)
		r.run()
		synctest.Wait()
		assert.Equal(t, "2", r.in("a").AppliedVersion)
		assert.Equal(t, "42", r.in("b").AppliedVersion)
		assert.Empty(t, r.in("c").AppliedVersion)
		assert.Empty(t, r.ctlr.LastSyncResourceVersion())
		assert.Empty(t, r.status().AcceptedVersion)
		r.sources["c"].ReleaseHanging()
		synctest.Wait()
		assert.Equal(t, "9", r.in("c").AppliedVersion)
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, "2", r.status().AcceptedVersion)

		r.sources["a"].Advance(100)
		r.sources["a"].SendBookmarks()
		synctest.Wait()
		assert.Equal(t, "102", r.in("a").AppliedVersion)
		assert.Equal(t, "9", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, "9", r.indexer.LastStoreSyncResourceVersion())
		assert.Equal(t, "9", r.status().AppliedVersion)
		r.stop()
	})
}

// G14: what a Config says of one source holds for each of several.
func TestG14OptionsHoldForEachNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		transformed := map[string]int{}
		resyncs := 0
		names := map[string]bool{}
		r := newNamespaceRig(t, func(c *Config) {
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
			c.MergeRecreated = true
			c.WatchErrorHandler = func(r *Reflector, _ error) {
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
		assert.Equal(t, 3, resyncs)
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

// A reflector's part in a mirror of several namespaces is named after the place
// that made it, unless it is given a name.
func TestANamespacesReflectorIsNamedAfterThePlaceAndTheNamespace(t *testing.T) {
	status, ok := StatusOf(New(&Config{
		Namespaces: map[string]ListerWatcher{"a": &ListWatch{}}, Store: NewStore(MetaNamespaceKeyFunc),
	}))
	require.True(t, ok)
	assert.Regexp(t, `^[^/]+/[^/]+\.(go|s):\d+$`, status.Name)
	require.Len(t, status.Namespaces, 1)
	assert.Equal(t, status.Name+"/a", status.Namespaces[0].Name)
	assert.Equal(t, PhaseIdle, status.Phase)
}

func TestSyncedInAnswersForTheNamespacesThereAre(t *testing.T) {
	c := New(&Config{Namespaces: map[string]ListerWatcher{"a": &ListWatch{}}, Store: NewStore(MetaNamespaceKeyFunc)})
	checker, ok := SyncedIn(c, "a")
	require.True(t, ok)
	assert.False(t, IsDone(checker))
	assert.True(t, strings.HasSuffix(checker.Name(), "/a"), checker.Name())
	assert.NotEmpty(t, c.HasSyncedChecker().Name())
	_, ok = SyncedIn(c, "b")
	assert.False(t, ok)
	_, ok = SyncedIn(New(&Config{ListerWatcher: &ListWatch{}, Store: NewStore(MetaNamespaceKeyFunc)}), "a")
	assert.False(t, ok)
	_, ok = SyncedIn(nil, "a")
	assert.False(t, ok)
}

func TestMistakesWithNamespacesPanicAndNameTheField(t *testing.T) {
	source := &ListWatch{}
	for _, c := range []struct {
		want   string
		change func(*Config)
	}{
		{"both a ListerWatcher and Namespaces", func(c *Config) { c.ListerWatcher = source }},
		{"without a namespace", func(c *Config) { c.Namespaces[""] = source }},
		{"source of \"b\" is nil", func(c *Config) { c.Namespaces["b"] = (*ListWatch)(nil) }},
		{"source of \"c\" is nil", func(c *Config) { c.Namespaces["c"] = nil }},
		{"\"a/b\" contains a slash", func(c *Config) { c.Namespaces["a/b"] = source }},
		{"neither Queue nor Process", func(c *Config) { c.Queue = NewDeltaFIFOWithOptions(DeltaFIFOOptions{}) }},
		{"neither Queue nor Process", func(c *Config) { c.Process = func(any, bool) error { return nil } }},
		{"neither Queue nor Process", func(c *Config) { c.ProcessBatch = func([]Delta, bool) error { return nil } }},
		{"Config.Store of NewStore or NewIndexer", func(c *Config) { c.Store = &storeOfAnother{Store: c.Store} }},
		{"Config.Store of NewStore or NewIndexer", func(c *Config) { c.Store = nil }},
		{"Config.Store of NewStore or NewIndexer", func(c *Config) { c.Store = InNamespace(c.Store, "a") }},
		{"Config.KeyFunction", func(c *Config) { c.KeyFunction = MetaNamespaceKeyFunc }},
		{"Config.Transform and the Store's", func(c *Config) {
			c.Transform, c.Store = transformByLabel, newTagStore(WithTransformer(transformByLabel))
		}},
		{"ReflectorOptions.ResyncPeriod is negative", func(c *Config) { c.FullResyncPeriod = -1 }},
	} {
		t.Run(c.want, func(t *testing.T) {
			config := &Config{Namespaces: map[string]ListerWatcher{"a": source}, Store: NewStore(MetaNamespaceKeyFunc)}
			New(config)
			c.change(config)
			defer func() { assert.Contains(t, fmt.Sprint(recover()), c.want) }()
			New(config)
		})
	}
}

// Whoever computes the namespaces, and comes to none, is not told of a field that
// was not meant.
func TestAnEmptyMapOfNamespacesIsNamedWhereNoSourceIsSet(t *testing.T) {
	for name, c := range map[string]struct {
		namespaces map[string]ListerWatcher
		want       string
	}{
		"empty": {map[string]ListerWatcher{}, "Config.Namespaces is empty and Config.ListerWatcher is nil"},
		"none":  {nil, "cache: Config.ListerWatcher is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &Config{Namespaces: c.namespaces, Store: NewStore(MetaNamespaceKeyFunc), ListerWatcher: &ListWatch{}}
			New(config)
			config.ListerWatcher = nil
			defer func() { assert.Contains(t, fmt.Sprint(recover()), c.want) }()
			New(config)
		})
	}
}

// No function of the user's is called under a lock. Fails if one namespace waits until
// Random has returned to another.
func TestRandomIsCalledByOneNamespaceWhileItRunsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, met atomic.Int32
		r := newNamespaceRig(t, func(c *Config) {
			c.ReflectorOptions.Random = func() float64 {
				calls.Add(1)
				// All namespaces begin at the same time. The bound is for whoever would wait for
				// another here in vain.
				for range 1_000_000 {
					if calls.Load() > 1 {
						met.Add(1)
						break
					}
					runtime.Gosched()
				}
				return 0
			}
		})
		r.run()
		synctest.Wait()
		assert.GreaterOrEqual(t, calls.Load(), int32(3))
		assert.Equal(t, calls.Load(), met.Load())
		r.stop()
	})
}
