package guarantees

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// A replacement of the whole store replaces the content of all views.
func TestReplacingTheWholeStoreReplacesEveryNamespace(t *testing.T) {
	whole, a, b := viewsOf()
	require.NoError(t, a.Replace([]any{podAt("a", "1", "1")}, "5"))
	require.NoError(t, b.Replace([]any{podAt("b", "1", "1")}, "6"))
	require.NoError(t, whole.Replace([]any{podAt("a", "2", "1")}, "3"))
	assert.Equal(t, map[string]string{"a/2": "1"}, contents(whole))
	assert.Equal(t, "3", whole.LastStoreSyncResourceVersion(), "it does not claim more")
	assert.Equal(t, "5", a.LastStoreSyncResourceVersion(), "no progress was reported to it")
}

func TestAStoreHasOneViewOfEachNamespace(t *testing.T) {
	whole := newTagStore()
	views := make([]cache.Store, 20)
	var all sync.WaitGroup
	for i := range views {
		all.Go(func() { views[i] = cache.InNamespace(whole, []string{"a", "b"}[i%2]) })
	}
	all.Wait()
	for i, view := range views {
		assert.Same(t, views[i%2], view)
	}
	assert.NotSame(t, views[0], views[1])
}

func TestMistakesInMakingAViewPanic(t *testing.T) {
	for want, mistake := range map[string]func(){
		"namespace is empty":        func() { cache.InNamespace(newTagStore(), "") },
		"contains a slash":          func() { cache.InNamespace(newTagStore(), "a/b") },
		"view of a namespace":       func() { cache.InNamespace(cache.InNamespace(newTagStore(), "a"), "b") },
		"of NewStore or NewIndexer": func() { cache.InNamespace(&refusingStore{Store: newTagStore()}, "a") },
		"not one of NewStore":       func() { cache.InNamespace(nil, "a") },
	} {
		t.Run(want, func(t *testing.T) {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), want) }()
			mistake()
		})
	}
}

// The default name of a namespace's reflector is the call site of its constructor and the namespace.
func TestANamespacesReflectorIsNamedAfterTheCallSiteAndTheNamespace(t *testing.T) {
	status := cache.New(&cache.Config{
		Namespaces: map[string]cache.Source{"a": &cache.ListWatch{}}, Store: cache.NewStore(cache.MetaNamespaceKeyFunc),
	}).Status()
	assert.Regexp(t, `^[^/]+/[^/]+\.(go|s):\d+$`, status.Name)
	require.Len(t, status.Namespaces, 1)
	assert.Equal(t, status.Name+"/a", status.Namespaces[0].Name)
	assert.Equal(t, cache.PhaseIdle, status.Phase)
}

func TestSyncedInAnswersForTheNamespacesThereAre(t *testing.T) {
	c := cache.New(&cache.Config{Namespaces: map[string]cache.Source{"a": &cache.ListWatch{}}, Store: cache.NewStore(cache.MetaNamespaceKeyFunc)})
	checker, ok := c.SyncedIn("a")
	require.True(t, ok)
	assert.False(t, cache.IsDone(checker))
	assert.True(t, strings.HasSuffix(checker.Name(), "/a"), checker.Name())
	assert.NotEmpty(t, c.HasSyncedChecker().Name())
	_, ok = c.SyncedIn("b")
	assert.False(t, ok)
	whole := cache.New(&cache.Config{ListerWatcher: &cache.ListWatch{}, Store: cache.NewStore(cache.MetaNamespaceKeyFunc)})
	_, ok = whole.SyncedIn("a")
	assert.False(t, ok)
}

func TestMistakesWithNamespacesPanicAndNameTheField(t *testing.T) {
	source := &cache.ListWatch{}
	for _, c := range []struct {
		want   string
		change func(*cache.Config)
	}{
		{"both a source and Namespaces", func(c *cache.Config) { c.ListerWatcher = source }},
		{"without a namespace", func(c *cache.Config) { c.Namespaces[""] = source }},
		{"source of \"b\" is nil", func(c *cache.Config) { c.Namespaces["b"] = (*cache.ListWatch)(nil) }},
		{"source of \"c\" is nil", func(c *cache.Config) { c.Namespaces["c"] = nil }},
		{"\"a/b\" contains a slash", func(c *cache.Config) { c.Namespaces["a/b"] = source }},
		{"both a Store and a Queue or Process", func(c *cache.Config) { c.Queue = cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{}) }},
		{"both a Store and a Queue or Process", func(c *cache.Config) { c.Process = func(any, bool) error { return nil } }},
		{"both a Store and a Queue or Process", func(c *cache.Config) { c.ProcessBatch = func([]cache.Delta, bool) error { return nil } }},
		{"Config.Store is none of NewStore or NewIndexer", func(c *cache.Config) { c.Store = &refusingStore{Store: c.Store} }},
		{"Config.Namespaces needs a Config.Store", func(c *cache.Config) { c.Store = nil }},
		{"Config.Store of NewStore or NewIndexer", func(c *cache.Config) { c.Store = cache.InNamespace(c.Store, "a") }},
		{"Config.Transform and the Store's", func(c *cache.Config) {
			c.Transform, c.Store = transformByLabel, newTagStore(cache.WithTransformer(transformByLabel))
		}},
		{"ReflectorOptions.ResyncPeriod is negative", func(c *cache.Config) { c.FullResyncPeriod = -1 }},
	} {
		t.Run(c.want, func(t *testing.T) {
			config := &cache.Config{Namespaces: map[string]cache.Source{"a": source}, Store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
			cache.New(config)
			c.change(config)
			defer func() { assert.Contains(t, fmt.Sprint(recover()), c.want) }()
			cache.New(config)
		})
	}
}

// If a program computes an empty map of namespaces, the panic names Namespaces and not another field.
func TestAnEmptyMapOfNamespacesIsNamedWhereNoSourceIsSet(t *testing.T) {
	for name, c := range map[string]struct {
		namespaces map[string]cache.Source
		want       string
	}{
		"empty": {map[string]cache.Source{}, "there are no Config.Namespaces"},
		"none":  {nil, "cache: Config.ListerWatcher is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			config := &cache.Config{Namespaces: c.namespaces, Store: cache.NewStore(cache.MetaNamespaceKeyFunc), ListerWatcher: &cache.ListWatch{}}
			cache.New(config)
			config.ListerWatcher = nil
			defer func() { assert.Contains(t, fmt.Sprint(recover()), c.want) }()
			cache.New(config)
		})
	}
}

// Reflectors may feed the views of a store without a queue, with different list strategies.
func TestReflectorsFeedTheViewsOfOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sources := map[string]*cachetest.Source{
			"a": newSource(t, pod("a", "1"), pod("a", "2")),
			"b": newSource(t, pod("b", "1"), pod("b", "2")),
		}
		sources["b"].Advance(10)
		indexer := newTagStore()
		h := &errorRecorder{}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		reflectors := map[string]*cache.Reflector{}
		for namespace, source := range sources {
			reflectors[namespace] = cache.NewReflectorWithOptions(source, &object{}, cache.InNamespace(indexer, namespace),
				cache.ReflectorOptions{Name: namespace, ErrorHandler: h.handle})
		}
		for _, r := range reflectors {
			running.Go(func() { r.RunWithContext(ctx) })
		}
		synctest.Wait()
		assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2", "b/1": "1", "b/2": "2"}, contents(indexer))
		assert.Equal(t, "2", indexer.LastStoreSyncResourceVersion())
		assert.Equal(t, "12", reflectors["b"].Status().AppliedVersion)
		assert.Equal(t, "2", reflectors["a"].Status().AppliedVersion)

		_, err := sources["a"].DeleteSilently("a", "1")
		require.NoError(t, err)
		_, err = sources["b"].DeleteSilently("b", "1")
		require.NoError(t, err)
		require.NoError(t, sources["a"].Apply(pod("b", "1"), pod("b", "3"), pod("a", "3"))) // a's source must not report b's objects
		_, err = sources["a"].Delete("b", "3")
		require.NoError(t, err)
		sources["a"].BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, map[string]string{"a/2": "2", "a/3": "6", "b/1": "1", "b/2": "2"}, contents(indexer))
		assert.Equal(t, []string{"b/1"}, quarantinedKeys(reflectors["a"].Status()))
		assert.Empty(t, reflectors["b"].Status().Quarantined)
		cancel()
		running.Wait()
		for _, source := range sources {
			source.Close()
		}
	})
}
