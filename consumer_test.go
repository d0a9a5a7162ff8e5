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

// halfReadable is an indexer that lists everything, and cannot return one object.
type halfReadable struct {
	Indexer
	unreadable string
}

func (h halfReadable) GetByKey(key string) (any, bool, error) {
	if key == h.unreadable {
		return nil, false, errBoom
	}
	return h.Indexer.GetByKey(key)
}

// G12: an object that KnownObjects cannot return is reported by the reflector that fills
// the queue: one time for each list that deletes it with an empty tombstone, and for each
// resync that leaves it out. Neither ends the watch, or the list. Fails if that is only
// logged, or taken for the refusal of the whole list.
func TestG12AKnownObjectThatCannotBeReadIsReported(t *testing.T) {
	for name, resyncs := range map[string]int{"by a list": 0, "by resyncs": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := processRig(t, newSource(t, pod("a", "1"), pod("a", "2")), func(c *Config, _ *DeltaFIFO, indexer Indexer) {
					c.Queue = NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: halfReadable{indexer, "a/1"}, EmitDeltaTypeReplaced: true})
					if resyncs > 0 {
						c.FullResyncPeriod = time.Minute
					}
				})
				r.run()
				synctest.Wait()
				require.Empty(t, r.heard.all())
				lists, failures := 1, resyncs
				if resyncs == 0 {
					_, err := r.source.DeleteSilently("a", "1")
					require.NoError(t, err)
					r.source.BreakWatches(cachetest.ErrExpired())
					lists, failures = 2, 1
				}
				sleep(3*time.Minute + time.Second)
				var heard []error
				for _, err := range r.heard.all() {
					if CauseOf(err) != CauseExpired {
						heard = append(heard, err)
					}
				}
				require.Len(t, heard, failures)
				for _, err := range heard {
					assertUnread(t, "a/1", err)
				}
				assert.Equal(t, heard[failures-1], r.status().LastFailure.Err)
				assert.Empty(t, r.status().Quarantined)
				assert.Equal(t, lists, r.source.ListCalls())
				assert.Equal(t, 1, r.source.ActiveWatches())
				r.equalsSource()
				r.stop()
			})
		})
	}
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

// G6, G12: a Process that fails is reported with the key, the key is listed in
// the status until it is processed again, and the next changes go on. Fails if
// Process's error is dropped, as client-go does.
func TestG6AProcessThatFailsIsReportedByKey(t *testing.T) {
	for _, batch := range []bool{false, true} {
		t.Run(fmt.Sprintf("in batches %v", batch), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, bad(pod("a", "1")))
				process := func(deltas []Delta) error {
					if isBad(deltas[0].Object) {
						return errBoom
					}
					return nil
				}
				r := processRig(t, source, func(c *Config, _ *DeltaFIFO, _ Indexer) {
					c.Process = func(obj any, _ bool) error { return process(obj.(Deltas)) }
					if batch {
						c.ProcessBatch = func(deltas []Delta, _ bool) error { return process(deltas) }
					}
				})
				r.run()
				synctest.Wait()
				require.Len(t, r.heard.all(), 1)
				var failed *ProcessError
				require.ErrorAs(t, r.heard.all()[0], &failed)
				assert.Equal(t, []string{"a/1"}, failed.Keys)
				assert.ErrorIs(t, failed, errBoom)
				assert.Equal(t, CauseProcess, r.status().LastFailure.Cause)
				require.Len(t, r.status().Quarantined, 1)
				assert.Equal(t, StageProcess, r.status().Quarantined[0].Stage)
				assert.True(t, r.ctlr.HasSynced())
				require.NoError(t, source.Apply(labelled(pod("a", "1"), "good")))
				synctest.Wait()
				assert.Empty(t, r.status().Quarantined)
				assert.Equal(t, 1, source.ListCalls())
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

// A store that transforms is spared it where the controller makes the queue: each
// object is transformed once. So is one with a queue that transforms.
func TestG14AStoreThatTransformsIsFilledByAQueueThatDoesItForBoth(t *testing.T) {
	for name, withQueue := range map[string]bool{"own queue": false, "given queue": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runs := 0
				transform := func(obj any) (any, error) { runs++; return obj, nil }
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				r := newRig(t, source, func(c *Config) {
					c.Store = NewStore(MetaNamespaceKeyFunc, WithTransformer(transform))
					if withQueue {
						c.Queue = NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: c.Store})
					}
				})
				r.run()
				synctest.Wait()
				assert.Equal(t, 2, runs)
				r.stop()
			})
		})
	}
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
