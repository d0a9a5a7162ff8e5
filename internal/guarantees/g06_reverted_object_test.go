package guarantees

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// G6: a state that a Process or a foreign store refused is released once the source has reverted it.
// Fails if the relist's state is mistaken for a resync of the old one.
func TestG6AStateThatWasRefusedAndRevertedIsNoLongerQuarantined(t *testing.T) {
	for name, build := range refusingRigs {
		for how, list := range map[string]func(*cache.Config){"a list": func(*cache.Config) {}, "a streaming list": stream} {
			t.Run(name+", "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					r := build(t, source, list)
					r.run()
					sleep(healthyTime)
					revertBadObject(t, source, r.status)
					r.assertEqualsSource()
					r.stop()
				})
			})
		}
	}
}

// revertBadObject makes an object bad and then reverts the source to before that, and checks
// the status in between and after. Another object, good and changed in the same time, shows
// that a list has been accepted.
func revertBadObject(t *testing.T, source *cachetest.Source, status func() cache.Status) {
	t.Helper()
	version := source.Version()
	require.NoError(t, source.Apply(bad(pod("a", "1")), labelled(pod("a", "2"), "later")))
	synctest.Wait()
	require.Len(t, status().Quarantined, 1)
	require.NoError(t, source.Rollback(version))
	sleep(time.Minute)
	assert.Empty(t, status().Quarantined)
	// It is quarantined and reported again when it is bad again.
	require.NoError(t, source.Apply(bad(pod("a", "1"))))
	synctest.Wait()
	assert.Len(t, status().Quarantined, 1)
	require.NoError(t, source.Apply(labelled(pod("a", "1"), "good")))
	synctest.Wait()
	assert.Empty(t, status().Quarantined)
}

// G6: a quarantined state is released once the source has reverted it, however the previous state
// returns. Fails if a store ignores an unchanged object although a later state is quarantined.
func TestG6AStateThatTheSourceHasRevertedIsNoLongerQuarantined(t *testing.T) {
	for stage, install := range objectFailures {
		for name, list := range map[string]func(*cache.Config){
			"a list": func(*cache.Config) {}, "a list item by item": listByItem, "a streaming list": stream,
		} {
			t.Run(fmt.Sprintf("%s, %s", stage, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					r := newRig(t, source, func(c *cache.Config) {
						install(c, failIfBad)
						list(c)
					})
					r.run()
					sleep(healthyTime)
					revertBadObject(t, source, r.status)
					r.assertEqualsSource()
					r.stop()
				})
			})
		}
	}
}

// G6: the same in an informer, whose queue and store are its own.
func TestG6AnInformerReleasesARevertedObject(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				r := newInformerRig(t, source, func(c *cache.InformerConfig[*object]) {
					c.ReflectorOptions.Strategy = strategy
					c.Indexes = cache.TypedIndexers[*object]{"fails": func(obj *object) ([]string, error) { return nil, failIfBad(obj) }}
				})
				r.run()
				sleep(healthyTime)
				revertBadObject(t, source, r.inf.Status)
				r.stop()
			})
		})
	}
}

// G6: the same without a queue.
func TestG6AReflectorsStoreReleasesARevertedObject(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }})
				reflector := cache.NewReflectorWithOptions(source, &object{}, indexer, cache.ReflectorOptions{Strategy: strategy, ErrorHandler: (&errorRecorder{}).handle})
				stop := runReflector(t, reflector)
				sleep(healthyTime)
				revertBadObject(t, source, reflector.Status)
				stop()
				source.Close()
			})
		})
	}
}

// G6: the same in one of several namespaces; another namespace's object stays quarantined.
func TestG6ANamespaceReleasesARevertedObject(t *testing.T) {
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			eachNamespaceRig(t, func(t *testing.T, informer bool) {
				r := newNamespaceRig(t, informer, func(c *cache.Config) {
					deterministic(strategy, 0)(c)
					require.NoError(t, c.Store.(cache.Indexer).AddIndexers(cache.Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }}))
				})
				r.run()
				sleep(healthyTime)
				r.apply(bad(pod("b", "1")))
				revertBadObject(t, r.sources["a"], func() cache.Status { return r.statusOf("a") })
				assert.Len(t, r.statusOf("b").Quarantined, 1)
				r.assertEqualsSources("a", "c")
				r.stop()
			})
		})
	}
}
