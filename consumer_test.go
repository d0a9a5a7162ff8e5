package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/watchmirror/cache/cachetest"
)

// processRig is a pipeline as client-go's users build it: a queue over a store,
// and a Process that applies the deltas.
func processRig(t *testing.T, source *cachetest.Source, change func(*Config, *DeltaFIFO, Indexer)) *rig {
	var indexer Indexer
	r := newRig(t, source, func(c *Config) {
		indexer = c.Store.(Indexer)
		queue := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: indexer, EmitDeltaTypeReplaced: true})
		c.Queue, c.Store, c.Handler = queue, nil, nil
		c.Process = func(obj any, _ bool) error { return applyDeltas(indexer, obj.(Deltas)) }
		if change != nil {
			change(c, queue, indexer)
		}
	})
	return r
}

func applyDeltas(store Store, deltas []Delta) error {
	for _, d := range deltas {
		var err error
		switch d.Type {
		case Bookmark:
			store.Bookmark(d.Object.(BookmarkInfo).ResourceVersion)
		case Deleted:
			if tombstone, ok := d.Object.(DeletedFinalStateUnknown); ok {
				d.Object = ExplicitKey(tombstone.Key)
			}
			err = store.Delete(d.Object)
		default:
			err = store.Update(d.Object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// The classic way: what Process applies equals the source, and both versions,
// the controller's and the store's, say how far it has come.
func TestAProcessThatAppliesDeltasMirrorsTheSource(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprintf("in batches %v", batch), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "3"))
				r := processRig(t, source, func(c *Config, q *DeltaFIFO, indexer Indexer) {
					if batch {
						c.ProcessBatch = func(deltas []Delta, _ bool) error { return applyDeltas(indexer, deltas) }
					}
				})
				r.run()
				synctest.Wait()
				assert.True(t, r.ctlr.HasSynced())
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "x")))
				_, err := source.Delete("a", "2")
				require.NoError(t, err)
				synctest.Wait()
				r.equalsSource()
				assert.Equal(t, source.ResourceVersion(), r.ctlr.LastSyncResourceVersion())
				assert.Equal(t, source.ResourceVersion(), r.indexer.LastStoreSyncResourceVersion(), "known objects are told")
				source.Advance(5)
				source.SendBookmarks()
				_, err = source.DeleteSilently("b", "3")
				require.NoError(t, err)
				source.BreakWatches(cachetest.ErrExpired())
				sleep(time.Minute)
				r.equalsSource()
				assert.Equal(t, source.ResourceVersion(), r.status().AppliedVersion)
				r.stop()
			})
		})
	}
}

// surviving makes apimachinery's panic handlers let the process live.
func surviving(t *testing.T) {
	before, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = before, handlers })
}

// Where the process survives a panic of the handler or of Process, it is reported
// and the pipeline goes on; client-go's controller would have ended unnoticed.
func TestAPanicOfTheConsumerIsReportedWhereTheProcessSurvives(t *testing.T) {
	surviving(t)
	boom := func(obj any) {
		if isBad(obj) {
			panic("boom")
		}
	}
	rigs := map[string]func(*testing.T, *cachetest.Source) *rig{
		"handler": func(t *testing.T, s *cachetest.Source) *rig {
			return newRig(t, s, func(c *Config) {
				c.Handler = ResourceEventHandlerFuncs{AddFunc: boom, UpdateFunc: func(_, obj any) { boom(obj) }}
			})
		},
		"process": func(t *testing.T, s *cachetest.Source) *rig {
			return processRig(t, s, func(c *Config, _ *DeltaFIFO, indexer Indexer) {
				apply := c.Process
				c.Process = func(obj any, initial bool) error {
					err := apply(obj, initial)
					boom(obj.(Deltas).Newest().Object)
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
				assert.Equal(t, []Cause{CauseProcess}, r.heard.causes())
				require.NoError(t, source.Apply(pod("a", "3")))
				synctest.Wait()
				r.equalsSource()
				r.stop()
			})
		})
	}
}

// A panic of the handler ends the controller where panics are to crash, and
// reaches the caller of Run.
func TestAPanicOfTheHandlerReachesTheCallerOfRun(t *testing.T) {
	handlers := utilruntime.PanicHandlers
	utilruntime.PanicHandlers = nil
	defer func() { utilruntime.PanicHandlers = handlers }()
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, func(c *Config) {
			c.Handler = ResourceEventHandlerFuncs{AddFunc: func(any) { panic(errBoom) }}
		})
		func() {
			defer func() {
				panicked, ok := recover().(*PanicError)
				require.True(t, ok)
				assert.ErrorIs(t, panicked, errBoom)
			}()
			r.ctlr.Run(make(chan struct{}))
		}()
		source.Close()
	})
}

// storeOfAnother is a Store that is not ours: an indexer without what only ours
// have. It can be told to refuse.
type storeOfAnother struct {
	Store
	mu     sync.Mutex
	refuse func(obj any) error
}

func (s *storeOfAnother) Update(obj any) error {
	if err := s.check(obj); err != nil {
		return err
	}
	return s.Store.Update(obj)
}

func (s *storeOfAnother) Add(obj any) error {
	if err := s.check(obj); err != nil {
		return err
	}
	return s.Store.Add(obj)
}

func (s *storeOfAnother) check(obj any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse == nil {
		return nil
	}
	return s.refuse(obj)
}

// A store of somebody else's is filled one object at a time, and told of the
// version after it holds what the version says.
func TestAControllerFillsAStoreThatIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), bad(pod("a", "3")))
		var indexer Indexer
		r := newRig(t, source, func(c *Config) {
			indexer = c.Store.(Indexer)
			c.KeyFunction = MetaNamespaceKeyFunc
			c.Store = &storeOfAnother{Store: indexer, refuse: func(obj any) error {
				if isBad(obj) {
					return errBoom
				}
				return nil
			}}
		})
		r.run()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"a/1", "a/2"}, indexer.ListKeys())
		assert.Equal(t, "3", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, []Cause{CauseObject}, r.heard.causes())
		require.Len(t, r.status().Quarantined, 1)
		r.handler.take()

		require.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), labelled(pod("a", "3"), "good")))
		_, err := source.Delete("a", "2")
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"update a/1@4", "add a/3@5", "delete a/2"}, r.handler.take())
		assert.Empty(t, r.status().Quarantined)
		_, err = source.DeleteSilently("a", "1")
		require.NoError(t, err)
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		r.equalsSource()
		assert.Contains(t, r.handler.take(), "tombstone a/1")
		r.stop()
	})
}

// A queue that is not ours works too; its applied version is the newest that it
// has handed out and was processed.
func TestAControllerRunsAQueueThatIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		r := processRig(t, source, func(c *Config, queue *DeltaFIFO, _ Indexer) { c.Queue = foreignQueue{queue} })
		assert.Empty(t, r.ctlr.LastSyncResourceVersion())
		r.run()
		synctest.Wait()
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		require.NoError(t, source.Apply(pod("a", "3")))
		_, err := source.Delete("a", "1")
		require.NoError(t, err)
		synctest.Wait()
		r.equalsSource()
		assert.Equal(t, "4", r.ctlr.LastSyncResourceVersion())
		r.stop()
	})
}

// Replacement in parts: the source is not asked for more while the store takes in one
// part and more than one waits, and a stop ends that wait at once. Fails if Part does
// not wait, or waits with a lock or without the context.
func TestPartsOfAFirstListWaitForTheStore(t *testing.T) {
	for _, stopInstead := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := newSource(t)
			for i := range 5000 {
				require.NoError(t, source.Apply(pod("a", itoa(i))))
			}
			release := make(chan struct{})
			var once sync.Once
			r := newRig(t, source, nil)
			require.NoError(t, r.indexer.AddIndexers(Indexers{"slow": func(any) ([]string, error) {
				once.Do(func() { <-release })
				return nil, nil
			}}))
			r.run()
			sleep(time.Hour)
			assert.LessOrEqual(t, source.ListCalls(), 4, "one part is applied, two wait, one is held")
			assert.False(t, r.ctlr.HasSynced())
			if stopInstead {
				r.cancel()
				close(release)
				<-r.done
				source.Close()
				return
			}
			close(release)
			synctest.Wait()
			assert.True(t, r.ctlr.HasSynced())
			r.equalsSource()
			r.stop()
		})
	}
}

// The options that a Config shares with ReflectorOptions go before them; the
// plain error handler before the one with a context.
func TestConfigFieldsGoBeforeReflectorOptions(t *testing.T) {
	var plain, with []error
	source := &ListWatch{}
	config := Config{
		ListerWatcher: source, Store: NewStore(MetaNamespaceKeyFunc),
		ObjectDescription: "things", FullResyncPeriod: time.Hour, MinWatchTimeout: 7 * time.Minute, WatchListPageSize: 9,
		WatchErrorHandler:            func(_ *Reflector, err error) { plain = append(plain, err) },
		WatchErrorHandlerWithContext: func(_ context.Context, _ *Reflector, err error) { with = append(with, err) },
		ReflectorOptions:             ReflectorOptions{TypeDescription: "no", PageSize: 1, ResyncPeriod: time.Minute, Name: "kept"},
	}
	r := New(&config).(*controller).reflector
	assert.Equal(t, "things", r.TypeDescription())
	assert.Equal(t, "kept", r.Name())
	assert.Equal(t, int64(9), r.WatchListPageSize)
	assert.Equal(t, time.Hour, r.resyncPeriod)
	assert.Equal(t, 7*time.Minute, r.minWatchTimeout)
	assert.Equal(t, 14*time.Minute, r.maxWatchTimeout)
	r.tell(t.Context(), errBoom)
	assert.Len(t, plain, 1)
	assert.Empty(t, with)
	config.WatchErrorHandler = nil
	New(&config).(*controller).reflector.tell(t.Context(), errBoom)
	assert.Len(t, with, 1)
}

func TestAFinalStateThatCannotBeTransformedIsToldAsATombstone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		fail := false
		r := newRig(t, source, func(c *Config) {
			c.Transform = func(obj any) (any, error) {
				if fail {
					return nil, errBoom
				}
				return obj, nil
			}
		})
		r.run()
		synctest.Wait()
		r.handler.take()
		fail = true
		_, err := source.Delete("a", "1")
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"tombstone a/1"}, r.handler.take())
		assert.Equal(t, []Cause{CauseObject}, r.heard.causes())
		assert.Empty(t, r.status().Quarantined)
		r.equalsSource()
		r.stop()
	})
}

var (
	_ apiruntime.Object = (*object)(nil)
	_                   = errors.Is
)
