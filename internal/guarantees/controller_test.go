package guarantees

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// As with client-go: a Process applies the deltas to a store, which converges to the source; the
// versions of controller and store are the applied one.
func TestAProcessThatAppliesDeltasMirrorsTheSource(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprintf("in batches %v", batch), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "3"))
				r := processRig(t, source, func(c *cache.Config, q *cache.DeltaFIFO, indexer cache.Indexer) {
					if batch {
						c.ProcessBatch = func(deltas []cache.Delta, _ bool) error { return applyDeltas(indexer, deltas) }
					}
				})
				r.run()
				synctest.Wait()
				assert.True(t, r.ctlr.HasSynced())
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "x")))
				_, err := source.Delete("a", "2")
				require.NoError(t, err)
				synctest.Wait()
				r.assertEqualsSource()
				assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
				assert.Equal(t, source.ResourceVersion(), r.indexer.LastStoreSyncResourceVersion(), "known objects are delivered")
				source.Advance(5)
				source.SendBookmarks()
				_, err = source.DeleteSilently("b", "3")
				require.NoError(t, err)
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				r.assertEqualsSource()
				assert.Equal(t, source.ResourceVersion(), r.status().AppliedVersion)
				r.stop()
			})
		})
	}
}

// If the process survives a panic of the handler or of Process, the panic is reported and the controller
// continues; client-go's controller would end silently.
func TestAPanicOfTheConsumerIsReportedWhereTheProcessSurvives(t *testing.T) {
	survivePanics(t)
	boom := func(obj any) {
		if isBad(obj) {
			panic("boom")
		}
	}
	rigs := map[string]func(*testing.T, *cachetest.Source) *rig{
		"handler": func(t *testing.T, s *cachetest.Source) *rig {
			return newRig(t, s, func(c *cache.Config) {
				c.Handler = cache.ResourceEventHandlerFuncs{AddFunc: boom, UpdateFunc: func(_, obj any) { boom(obj) }}
			})
		},
		"process": func(t *testing.T, s *cachetest.Source) *rig {
			return processRig(t, s, func(c *cache.Config, _ *cache.DeltaFIFO, indexer cache.Indexer) {
				apply := c.Process
				c.Process = func(obj any, initial bool) error {
					err := apply(obj, initial)
					boom(obj.(cache.Deltas).Newest().Object)
					return err
				}
			})
		},
	}
	for name, build := range rigs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, bad(pod("a", "1")), pod("a", "2"))
				r := build(t, source)
				r.run()
				synctest.Wait()
				assert.True(t, r.ctlr.HasSynced())
				assert.Equal(t, []cache.Cause{causeHandlerError}, r.errors.causes())
				require.NoError(t, source.Apply(pod("a", "3")))
				synctest.Wait()
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}

// A foreign queue works too; the applied version is the newest one that was popped and processed.
func TestAControllerRunsAQueueThatIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		r := processRig(t, source, func(c *cache.Config, queue *cache.DeltaFIFO, _ cache.Indexer) { c.Queue = foreignQueue{queue} })
		assert.Empty(t, r.ctlr.LastSyncResourceVersion())
		r.run()
		synctest.Wait()
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		require.NoError(t, source.Apply(pod("a", "3")))
		_, err := source.Delete("a", "1")
		require.NoError(t, err)
		synctest.Wait()
		r.assertEqualsSource()
		assert.Equal(t, "4", r.ctlr.LastSyncResourceVersion())
		r.stop()
	})
}

// A handler receives an Add of each object that the store had before the run, and the changes of
// the first list.
func TestAHandlerOfAFilledStoreIsNotifiedOfTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		first := newRig(t, source, nil)
		first.run()
		synctest.Wait()
		first.cancel()
		<-first.done
		require.NoError(t, source.Apply(labelled(pod("a", "2"), "x")))
		second := newRig(t, source, func(c *cache.Config) { c.Store = first.indexer })
		second.run()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"add a/1@1 initial", "add a/2@2 initial", "update a/2@3"}, second.handler.take())
		second.stop()
	})
}

// A wrong argument makes a constructor panic with the name of the field.
func TestMistakesAtConstructionPanicAndNameTheField(t *testing.T) {
	source, store := &cache.ListWatch{}, cache.NewStore(cache.MetaNamespaceKeyFunc)
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})
	process := func(any, bool) error { return nil }
	mistakes := map[string]func(){
		"ListerWatcher": func() { cache.NewReflector(nil, nil, store, 0) },
		"store":         func() { cache.NewReflector(source, nil, nil, 0) },
		"ResyncPeriod":  func() { cache.NewReflector(source, nil, store, -1) },
		"PageSize":      func() { cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{PageSize: -1}) },
		"MinWatchTimeout": func() {
			cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{MinWatchTimeout: -time.Second})
		},
		"MaxWatchTimeout": func() {
			cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{MinWatchTimeout: 2 * time.Second, MaxWatchTimeout: time.Second})
		},
		"Strategy":             func() { cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{Strategy: 9}) },
		"Config.ListerWatcher": func() { cache.New(&cache.Config{Store: store}) },
		"neither":              func() { cache.New(&cache.Config{ListerWatcher: source}) },
		"Process":              func() { cache.New(&cache.Config{ListerWatcher: source, Queue: queue}) },
		"both":                 func() { cache.New(&cache.Config{ListerWatcher: source, Queue: queue, Process: process, Store: store}) },
		"Handler": func() {
			cache.New(&cache.Config{ListerWatcher: source, Queue: queue, Process: process, Handler: &recorder{}})
		},
		"Transform": func() {
			cache.New(&cache.Config{ListerWatcher: source, Queue: queue, Process: process, Transform: func(any) (any, error) { return nil, nil }})
		},
		"a Queue or Process": func() { cache.New(&cache.Config{ListerWatcher: source, Queue: queue, Store: store}) },
		"Config.Store":       func() { cache.New(&cache.Config{ListerWatcher: source, Store: struct{ cache.Store }{store}}) },
		"both set": func() {
			keep := func(obj any) (any, error) { return obj, nil }
			cache.New(&cache.Config{ListerWatcher: source, Store: cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(keep)), Transform: keep})
		},
		"ListerWatcher is nil": func() { cache.NewReflector((*cache.ListWatch)(nil), nil, store, 0) },
		"store is nil":         func() { cache.NewReflector(source, nil, (*cache.DeltaFIFO)(nil), 0) },
		"Backoff.Duration": func() {
			cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{Backoff: &wait.Backoff{}})
		},
		"Jitter": func() {
			cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{Backoff: &wait.Backoff{Duration: 1, Jitter: math.NaN()}})
		},
		"below a second": func() {
			cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{MaxWatchTimeout: time.Millisecond})
		},
		"ReflectorOptions.PageSize": func() { cache.New(&cache.Config{ListerWatcher: source, Store: store, WatchListPageSize: -1}) },
	}
	for field, mistake := range mistakes {
		t.Run(field, func(t *testing.T) {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), field) }()
			mistake()
			t.Error("it did not panic")
		})
	}
	t.Run("set on the field later: reported, and treated as unset", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, h := newSource(t, pod("a", "1")), &errorRecorder{}
			reflector := cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{ErrorHandler: h.handle})
			reflector.WatchListPageSize = -5
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			reflector.RunWithContext(ctx)
			require.Len(t, h.all(), 1)
			assert.Contains(t, h.all()[0].Error(), "WatchListPageSize")
			source.Close()
		})
	})
}

// foreignQueue hides all methods of a DeltaFIFO that a Queue does not have.
type foreignQueue struct{ cache.Queue }
