package cache

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// A queue over a view resyncs, and deletes as absent, what is the view's.
func TestAQueueOverAViewKnowsItsNamespaceAlone(t *testing.T) {
	whole, a, _ := viewsOf()
	require.NoError(t, whole.Replace([]any{podAt("a", "1", "1"), podAt("b", "1", "1")}, "1"))
	queue := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: a, EmitDeltaTypeReplaced: true})
	require.NoError(t, queue.Resync())
	require.NoError(t, queue.Replace([]any{podAt("a", "2", "2")}, "2"))
	var told []string
	b := pendingBatch(t, queue)
	for _, c := range b.changes {
		told = append(told, string(c.Type)+" "+c.key.String())
	}
	assert.ElementsMatch(t, []string{"Sync a/1", "Replaced a/2", "Deleted a/1"}, told)
}

// Reflectors feed views without a queue as well, each in its own way.
func TestReflectorsFeedTheViewsOfOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sources := map[string]*cachetest.Source{
			"a": newSource(t, pod("a", "1"), pod("a", "2")),
			"b": newSource(t, pod("b", "1"), pod("b", "2")),
		}
		sources["b"].Advance(10)
		indexer := newTagStore()
		h := &heard{}
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		reflectors := map[string]*Reflector{}
		for namespace, source := range sources {
			reflectors[namespace] = NewReflectorWithOptions(source, &object{}, InNamespace(indexer, namespace),
				ReflectorOptions{Name: namespace, ErrorHandler: h.handle})
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
		require.NoError(t, sources["a"].Apply(pod("b", "1"), pod("b", "3"), pod("a", "3"))) // what is b's is not a's to say
		_, err = sources["a"].Delete("b", "3")
		require.NoError(t, err)
		sources["a"].BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, map[string]string{"a/2": "2", "a/3": "6", "b/1": "1", "b/2": "2"}, contents(indexer))
		assert.Equal(t, []string{"b/1"}, keysHeldIn(reflectors["a"].Status()))
		assert.Empty(t, reflectors["b"].Status().Quarantined)
		cancel()
		running.Wait()
		for _, source := range sources {
			source.Close()
		}
	})
}
