package guarantees

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/mutation"
)

func withUID(o *object, uid types.UID) *object {
	o = o.DeepCopy()
	o.UID = uid
	return o
}

// stopScripts bring a mirror into each phase in which it can be stopped.
var stopScripts = map[string]struct {
	fault  func(*cachetest.Source)
	change func(*cache.Config)
	after  time.Duration
}{
	"before anything":               {},
	"while a list hangs":            {fault: func(s *cachetest.Source) { s.HangLists(1) }, after: time.Second},
	"in a list's backoff":           {fault: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, errBoom) }, after: 5 * time.Minute},
	"while a watch request hangs":   {fault: func(s *cachetest.Source) { s.HangWatches(1) }, after: time.Second},
	"in a watch's backoff":          {fault: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused()) }, after: 5 * time.Minute},
	"while watching":                {after: time.Minute},
	"while a watch is silent":       {fault: func(s *cachetest.Source) { s.Silence() }, after: time.Minute},
	"in Retry-After":                {fault: func(s *cachetest.Source) { s.FailLists(1, cachetest.ErrTooManyRequests(200)) }, after: time.Minute},
	"while a stream waits":          {fault: func(s *cachetest.Source) { s.WithholdInitialEventsEnd(cachetest.Forever) }, change: stream, after: 5 * time.Second},
	"in a stream's backoff":         {fault: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, errBoom) }, change: stream, after: 100 * time.Millisecond},
	"in a streaming list's backoff": {fault: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrTooManyRequests(0)) }, change: stream, after: time.Second},
}

// G9, B4, B17: in every phase, Run returns at the instant (of virtual time) at which its context ends,
// reports nothing, and leaves no goroutine, which would keep the bubble from ending. Fails if any wait
// does not select on the context, or if a failure is reported after it.
func TestG9RunReturnsAtOnceInEveryPhase(t *testing.T) {
	for name, script := range stopScripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newSource(t, pod("a", "1")), script.change)
				if script.fault != nil {
					script.fault(r.source)
				}
				r.run()
				if script.after > 0 {
					sleep(script.after)
				}
				before := len(r.errors.all())
				stopped := time.Now()
				r.cancel()
				<-r.done
				assert.Zero(t, time.Since(stopped), "virtual time between the context's end and Run's return")
				assert.Len(t, r.errors.all(), before, "nothing is reported when the context ends")
				assert.Equal(t, cache.PhaseStopped, r.status().Phase)
				r.source.Close()
			})
		})
	}
}

// G9: Run waits for a source that ignores its context, and reports it after 30 s. Fails if Run returns
// before the call does, or if nothing is reported.
func TestG9ASourceThatIgnoresItsContextIsWaitedForAndReported(t *testing.T) {
	for op, hang := range map[string]func(*cachetest.Source){
		"List":  func(s *cachetest.Source) { s.HangListsIgnoringContext(1) },
		"Watch": func(s *cachetest.Source) { s.HangWatchesIgnoringContext(1) },
	} {
		t.Run(op, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newSource(t), nil)
				hang(r.source)
				r.run()
				sleep(time.Second)
				r.cancel()
				sleep(29 * time.Second)
				assert.Empty(t, r.errors.all())
				sleep(2 * time.Second)
				var slow *cache.SlowSourceError
				require.Len(t, r.errors.all(), 1)
				require.ErrorAs(t, r.errors.all()[0], &slow)
				assert.Equal(t, op, slow.Op)
				select {
				case <-r.done:
					t.Error("Run returned while the source was still being called")
				default:
				}
				r.source.ReleaseHanging()
				<-r.done
				r.source.Close()
			})
		})
	}
}

// G9: once an error handler has ended the context, nothing else of the same batch of events, or of the same
// list, is reported.
func TestG9AnErrorHandlerThatEndsTheContextIsNotCalledAgain(t *testing.T) {
	first, second := bad(podAt("a", "1", "6")), bad(podAt("a", "2", "7"))
	wrongType := &metav1.Status{}
	failed := &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: 500}
	for name, c := range map[string]struct {
		listed []object
		events []watch.Event
	}{
		"two changes":                 {nil, []watch.Event{{Type: watch.Added, Object: first}, {Type: watch.Added, Object: second}}},
		"a change and a wrong type":   {nil, []watch.Event{{Type: watch.Added, Object: first}, {Type: watch.Added, Object: wrongType}}},
		"a wrong type and a change":   {nil, []watch.Event{{Type: watch.Added, Object: wrongType}, {Type: watch.Added, Object: second}}},
		"a change and an error event": {nil, []watch.Event{{Type: watch.Added, Object: first}, {Type: watch.Error, Object: failed}}},
		"two listed objects":          {[]object{*first, *second}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &cache.ListWatch{
					ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
						return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: c.listed}, nil
					},
					WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						w := watch.NewFakeWithChanSize(len(c.events), false)
						for _, e := range c.events {
							w.Action(e.Type, e.Object)
						}
						return w, nil
					},
				}
				ctx, cancel := context.WithCancel(t.Context())
				var reported errorRecorder
				indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"fails": func(obj any) ([]string, error) { return nil, failIfBad(obj) }})
				cache.NewReflectorWithOptions(source, &object{}, indexer, cache.ReflectorOptions{
					Strategy: cache.ListPaged,
					ErrorHandler: func(ctx context.Context, r *cache.Reflector, err error) {
						reported.handle(ctx, r, err)
						cancel()
					},
				}).RunWithContext(ctx)
				assert.Len(t, reported.all(), 1)
			})
		})
	}
}

// G9: the same for an informer, with handlers that block, resync and are removed, and with the mutation
// detector.
func TestG9AnInformersRunReturnsAtOnceInEveryPhase(t *testing.T) {
	for name, script := range stopScripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var config cache.Config
				if script.change != nil {
					script.change(&config)
				}
				r := newInformerRig(t, newSource(t, pod("a", "1")), func(c *cache.InformerConfig[*object]) {
					c.ReflectorOptions.Strategy = max(cache.ListPaged, config.ReflectorOptions.Strategy)
					c.DetectMutations = mutation.Options{}.New
					c.ResyncPeriod = time.Hour
				})
				if script.fault != nil {
					script.fault(r.source)
				}
				handle := r.handle(newReplicaHandler(t))
				removed := r.handle(newReplicaHandler(t))
				r.run()
				if script.after > 0 {
					sleep(script.after)
				}
				must(t, r.inf.RemoveHandler(removed))
				before := len(r.heard.all())
				stopped := time.Now()
				r.cancel()
				<-r.done
				assert.Zero(t, time.Since(stopped), "virtual time between the context's end and Run's return")
				assert.Len(t, r.heard.all(), before, "nothing is reported when the context ends")
				assert.True(t, r.inf.Shared().IsStopped())
				assert.True(t, cache.IsDone(r.inf.HasSyncedChecker()))
				assert.True(t, cache.IsDone(handle.HasSyncedChecker()))
				if !r.inf.HasSynced() {
					assert.ErrorIs(t, r.inf.WaitSynced(t.Context()), cache.ErrInformerStopped)
					assert.ErrorIs(t, doneError(handle.HasSyncedChecker()), cache.ErrInformerStopped)
				}
				r.source.Close()
			})
		})
	}
}

// G9: Run waits for running calls of handlers; pending changes are dropped. Fails if a handler is called
// after the context ended.
func TestG9RunWaitsForTheHandlersRunningCallsAndDropsTheRest(t *testing.T) {
	for _, delivery := range []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded} {
		t.Run(delivery.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
				var replicas []*replicaHandler
				for _, takes := range []time.Duration{3 * time.Second, 10 * time.Second} {
					notified := newReplicaHandler(t)
					notified.before = func(string) { time.Sleep(takes) }
					r.handle(notified, cache.HandlerOptions{Delivery: delivery})
					replicas = append(replicas, notified)
				}
				r.run()
				sleep(4 * time.Second)
				r.cancel()
				<-r.done
				assert.Equal(t, []string{"add a/1@1", "add a/2@2"}, replicas[0].take())
				assert.Equal(t, []string{"add a/1@1"}, replicas[1].take())
				sleep(time.Minute)
				assert.Empty(t, replicas[0].take())
				status := r.handlerStatus(0)
				assert.Equal(t, []int64{0, 2}, []int64{int64(status.Backlog), status.Delivered})
				r.stop()
			})
		})
	}
}

// G9: if the context ends during the Delete of a re-created object, its Add is dropped.
func TestG9TheSecondCallOfARecreationIsDropped(t *testing.T) {
	for name, end := range map[string]func(*informerRig, cache.ResourceEventHandlerRegistration){
		"stop": func(r *informerRig, _ cache.ResourceEventHandlerRegistration) { r.cancel() },
		"remove": func(r *informerRig, handle cache.ResourceEventHandlerRegistration) {
			must(r.T, r.inf.RemoveHandler(handle))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, withUID(pod("a", "1"), "first")), nil)
				notified := newReplicaHandler(t)
				handle := r.handle(notified)
				r.run()
				synctest.Wait()
				notified.take()
				notified.before = func(string) { time.Sleep(5 * time.Second) }
				_, err := r.source.DeleteSilently("a", "1")
				must(t, err, r.source.Apply(withUID(pod("a", "1"), "second")))
				r.source.CompactAll()
				r.source.BreakWatches(cachetest.ErrExpired())
				for r.inf.Status().AppliedVersion != "3" {
					sleep(100 * time.Millisecond)
				}
				synctest.Wait() // for the first call of the handler
				end(r, handle)
				sleep(time.Minute)
				assert.Equal(t, []string{"tombstone a/1"}, notified.take())
				r.stop()
			})
		})
	}
}

// A second Run, at the same time or afterwards, returns at once and says so; it changes
// nothing.
func TestAnInformerRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		notified := newReplicaHandler(t)
		r.handle(notified)
		r.run()
		synctest.Wait()
		again := func() {
			began := time.Now()
			assert.ErrorIs(t, r.inf.Run(context.Background()), cache.ErrAlreadyRan)
			r.inf.Shared().Run(nil)
			r.inf.Shared().RunWithContext(context.Background())
			assert.Zero(t, time.Since(began))
		}
		again()
		assert.Equal(t, 2, len(r.heard.all()), "those that return nothing report it")
		for _, err := range r.heard.all() {
			assert.ErrorIs(t, err, cache.ErrAlreadyRan)
			assert.ErrorContains(t, err, "test", "it says which informer")
		}
		must(t, r.source.Apply(pod("a", "2")))
		synctest.Wait()
		assert.Equal(t, []string{"add a/1@1", "add a/2@2"}, notified.take())
		r.stop()
		again()
		assert.True(t, r.inf.Shared().IsStopped())
	})
}

func TestAnInformerWhoseContextHasEndedAsksTheSourceForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		handle := r.handle(newReplicaHandler(t))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		must(t, r.inf.Run(ctx))
		assert.Zero(t, r.source.ListCalls())
		assert.False(t, r.inf.HasSynced())
		assert.ErrorIs(t, cache.WaitForDone(t.Context(), r.inf.HasSyncedChecker()), cache.ErrInformerStopped)
		assert.ErrorIs(t, cache.WaitForDone(t.Context(), handle.HasSyncedChecker()), cache.ErrInformerStopped)
		r.source.Close()
	})
}

// Handlers are added and removed while the informer stops. Each added one either syncs or fails, each
// refused one has an error; nothing hangs and no goroutine is left.
func TestHandlersComeAndGoWhileAnInformerStops(t *testing.T) {
	for i := range 40 {
		synctest.Test(t, func(t *testing.T) {
			r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
			r.run()
			sleep(time.Second)
			var all sync.WaitGroup
			var stay atomic.Int64
			for n := range 20 {
				all.Go(func() {
					time.Sleep(time.Duration(n%4) * time.Millisecond)
					handle, err := r.inf.Shared().AddEventHandler(newReplicaHandler(t))
					if err != nil {
						assert.ErrorIs(t, err, cache.ErrInformerStopped)
						assert.Nil(t, handle)
						return
					}
					if n%2 == 0 {
						assert.NoError(t, cache.ShutDownEventHandler(r.inf.Shared(), handle))
					} else {
						stay.Add(1)
					}
					<-handle.HasSyncedChecker().Done()
					if handle.HasSynced() {
						return
					}
					assert.Error(t, doneError(handle.HasSyncedChecker()))
				})
			}
			time.Sleep(2 * time.Millisecond)
			for range i {
				runtime.Gosched()
			}
			r.stop()
			all.Wait()
			assert.Len(t, r.inf.Status().Handlers, int(stay.Load()))
		})
	}
}

// G9: Run returns at the instant at which its context ends, whatever a list item by item waits for.
// Fails if passing on an item does not select on the context.
func TestG9AListItemByItemEndsWithItsContext(t *testing.T) {
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, row := range map[string]struct {
		source func(ctx context.Context, page, item int) error
		store  func(ctx context.Context, part cache.ReplacementPart) error
	}{
		"while the source waits before anything": {source: func(ctx context.Context, _, _ int) error { return wait(ctx) }},
		"while the source waits in the middle": {source: func(ctx context.Context, _, item int) error {
			if item == 250 {
				return wait(ctx)
			}
			return nil
		}},
		"while the store waits": {store: func(ctx context.Context, _ cache.ReplacementPart) error { return wait(ctx) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h := &itemSource{Source: filledSource(t, 1000), each: row.source}, &errorRecorder{}
				store := &partStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), onPart: row.store}
				if row.store == nil {
					store.onPart = func(context.Context, cache.ReplacementPart) error { return nil }
				}
				stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{Strategy: cache.ListUnpaged, ErrorHandler: h.handle}))
				sleep(time.Minute)
				ended := time.Now()
				stop()
				assert.Zero(t, time.Since(ended))
				assert.Empty(t, h.all())
				source.Close()
			})
		})
	}
}

// G9: likewise during a write: Run only waits for the running index function.
func TestG9AListItemByItemEndsWhileTheConsumerWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, release := &itemSource{Source: filledSource(t, 1000)}, make(chan struct{})
		r := newRig(t, source.Source, withItemSource(source))
		require.NoError(t, r.indexer.AddIndexers(cache.Indexers{"slow": func(any) ([]string, error) {
			<-release
			return nil, nil
		}}))
		r.run()
		sleep(time.Minute)
		r.cancel()
		sleep(time.Hour)
		close(release)
		<-r.done
		assert.Equal(t, cache.PhaseStopped, r.status().Phase)
		assert.Empty(t, r.errors.all())
		source.Close()
	})
}

// G9: Run waits for a source that ignores its context, and reports it after 30 s.
func TestG9AnItemListerThatIgnoresItsContextIsWaitedForAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, h := &itemFuncSource{list: func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			assert.NoError(t, takeAll(take, metav1.ListMeta{}, 1, 50))
			time.Sleep(time.Minute)
			assert.ErrorIs(t, take(metav1.ListMeta{}, podAt("a", "51", "51")), context.Canceled, "at once")
			return metav1.ListMeta{}, nil
		}}, &errorRecorder{}
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{ErrorHandler: h.handle}))
		began := time.Now()
		stop()
		assert.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, []cache.Cause{causeSlowSource}, h.causes())
		assert.ErrorContains(t, h.all()[0], "List")
	})
}

// If the store refuses a part, the call of the source is ended and waited for, the store's error is
// reported once, and the list is repeated after a pause. Fails if the source continues, or if its
// error is reported instead of the store's.
func TestAStoreThatRefusesAPartEndsTheCallIntoTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended time.Time
		refusals := 0
		store := &partStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), onPart: func(context.Context, cache.ReplacementPart) error {
			if refusals++; refusals == 2 {
				return errBoom
			}
			return nil
		}}
		h := &errorRecorder{}
		source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(ctx context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			err := takeAll(take, metav1.ListMeta{ResourceVersion: "1000"}, 1, 1000)
			if n == 1 {
				assert.ErrorIs(t, err, context.Canceled)
				assert.Error(t, take(metav1.ListMeta{}, podAt("a", "more", "1")), "and stays so")
				time.Sleep(time.Second)
				ended = time.Now()
				return metav1.ListMeta{}, fmt.Errorf("the server's fault: %w", err)
			}
			return metav1.ListMeta{ResourceVersion: "1000"}, err
		}}
		began := time.Now()
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{ErrorHandler: h.handle}))
		assert.Empty(t, h.all(), "not before the call has ended")
		sleep(time.Minute)
		assert.Equal(t, time.Second, ended.Sub(began))
		assert.Equal(t, []cache.Cause{causeStoreError}, h.causes())
		assert.NotContains(t, h.all()[0].Error(), "server's fault")
		assert.Equal(t, 2, source.listCalls())
		assert.Len(t, store.ListKeys(), 1000)
		stop()
	})
}

// G9: in every phase of the namespaces, Run returns at the instant at which its context ends, and
// leaves no goroutine. Fails if it waits longer than for running calls.
func TestG9RunOfSeveralNamespacesReturnsAtOnce(t *testing.T) {
	eachNamespaceRig(t, func(t *testing.T, informer bool) {
		r := newNamespaceRig(t, informer, nil)
		r.sources["a"].HangLists(1)
		r.sources["b"].FailLists(cachetest.Forever, errBoom)
		r.run()
		sleep(5 * time.Minute)
		reported := len(r.errors.all())
		stopped := time.Now()
		r.stop()
		assert.Zero(t, time.Since(stopped))
		assert.Len(t, r.errors.all(), reported, "nothing is reported when the context ends")
		assert.Equal(t, cache.PhaseStopped, r.status().Phase)
		r.assertEqualsSources("c")
	})
}

// G9: Run waits for a running handler call; the backlog is dropped.
func TestG9RunOfSeveralNamespacesWaitsForARunningHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h atomic.Int32
		r := newNamespaceRig(t, false, func(c *cache.Config) {
			c.Handler = cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				h.Add(1)
				time.Sleep(time.Hour)
			}}
		})
		r.run()
		sleep(time.Minute)
		before := r.versions()
		r.cancel()
		sleep(time.Minute)
		select {
		case <-r.done:
			t.Error("Run returned while the handler was running")
		default:
		}
		<-r.done
		assert.EqualValues(t, 1, h.Load())
		assert.Equal(t, before, r.versions())
		assert.Len(t, before, 6)
		r.close()
	})
}

// G9: changes that are pending when the context ends are dropped.
func TestG9TheRestOfABatchIsNotDeliveredAfterTheContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
		notified := 0
		var r *rig
		r = newRig(t, source, func(c *cache.Config) {
			c.Handler = cache.ResourceEventHandlerFuncs{AddFunc: func(any) { notified++; r.cancel() }}
		})
		r.run()
		<-r.done
		assert.Equal(t, 1, notified)
		source.Close()
	})
}

// slowFunction is a user function that, once enabled, takes a second and counts its calls. It
// ignores the context.
type slowFunction struct {
	on    bool
	calls int
}

func (s *slowFunction) call() {
	if s.on {
		s.calls++
		time.Sleep(time.Second)
	}
}

func (s *slowFunction) index() cache.Indexers {
	return cache.Indexers{"slow": func(any) ([]string, error) { s.call(); return nil, nil }}
}

func (s *slowFunction) transform(obj any) (any, error) { s.call(); return obj, nil }

// stoppableMirror is a running mirror; stop ends it and waits. It has a handler or a store.
type stoppableMirror struct {
	stop     func()
	notified *recorder
	store    cache.Store
}

// stoppedMirrors call slow for each object: when a part of a list is added, when a batch is
// applied, or when a queue is filled.
var stoppedMirrors = map[string]func(*testing.T, *cachetest.Source, *slowFunction) stoppableMirror{
	"a reflector's store": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stoppableMirror {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, slow.index())
		return startReflector(t, source, indexer)
	},
	"a reflector's transform": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stoppableMirror {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil, cache.WithTransformer(slow.transform))
		return startReflector(t, source, indexer)
	},
	"a controller's store": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stoppableMirror {
		r := newRig(t, source, func(c *cache.Config) { c.Store = cache.NewIndexer(cache.MetaNamespaceKeyFunc, slow.index()) })
		r.run()
		return stoppableMirror{stop: func() { r.cancel(); <-r.done }, notified: r.handler}
	},
	"a controller's transform": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stoppableMirror {
		r := newRig(t, source, func(c *cache.Config) { c.Transform = slow.transform })
		r.run()
		return stoppableMirror{stop: func() { r.cancel(); <-r.done }, notified: r.handler}
	},
	"an informer's store": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stoppableMirror {
		return startInformer(t, source, func(c *cache.InformerConfig[*object]) {
			c.Indexes = cache.TypedIndexers[*object]{"slow": func(*object) ([]string, error) { slow.call(); return nil, nil }}
		})
	},
	"an informer's transform": func(t *testing.T, source *cachetest.Source, slow *slowFunction) stoppableMirror {
		return startInformer(t, source, func(c *cache.InformerConfig[*object]) {
			c.Transform = func(obj *object) (*object, error) { slow.call(); return obj, nil }
		})
	},
}

func startReflector(t *testing.T, source *cachetest.Source, store cache.Store) stoppableMirror {
	r := cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{Strategy: cache.ListUnpaged})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	return stoppableMirror{stop: func() { cancel(); <-done }, store: store}
}

func startInformer(t *testing.T, source *cachetest.Source, change func(*cache.InformerConfig[*object])) stoppableMirror {
	r := newInformerRig(t, source, change)
	notified := &recorder{}
	r.handle(notified)
	r.run()
	return stoppableMirror{stop: func() { r.cancel(); <-r.done }, notified: notified}
}

// hundredObjects returns a hundred objects in the given state.
func hundredObjects(state string) (objects []*object) {
	for i := range 100 {
		objects = append(objects, labelled(pod("a", itoa(i)), state))
	}
	return objects
}

func applyAll(t *testing.T, source *cachetest.Source, objects []*object) {
	t.Helper()
	for _, obj := range objects {
		require.NoError(t, source.Apply(obj))
	}
}

// G9: if the context ends during a call of a user function, Run waits for that call, and calls no user
// function for the remaining objects of the list. Fails if a batch of a hundred objects is completed.
func TestG9NoFunctionIsCalledForTheRestOfAListAfterTheContextEnded(t *testing.T) {
	for name, start := range stoppedMirrors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, slow := newSource(t), &slowFunction{on: true}
				applyAll(t, source, hundredObjects("x"))
				m := start(t, source, slow)
				sleep(3500 * time.Millisecond)
				before := time.Now()
				m.stop()
				assert.Equal(t, 500*time.Millisecond, time.Since(before), "the fourth call is waited for")
				sleep(time.Hour)
				assert.Equal(t, 4, slow.calls)
				if m.notified != nil {
					assert.Empty(t, m.notified.take())
				} else {
					assert.Empty(t, m.store.List(), "the part was not accepted")
					assert.Empty(t, m.store.LastStoreSyncResourceVersion())
				}
				source.Close()
			})
		})
	}
}

// G9: if the context ends during the OnDelete of a re-created object, a controller's handler does not
// receive its OnAdd.
func TestG9TheSecondCallOfARecreationIsDroppedByAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, notified := newSource(t, withUID(pod("a", "1"), "first")), &recorder{}
		var r *rig
		r = newRig(t, source, func(c *cache.Config) {
			c.Handler = cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { notified.OnAdd(obj, false) },
				UpdateFunc: notified.OnUpdate,
				DeleteFunc: func(obj any) { notified.OnDelete(obj); r.cancel() },
			}
		})
		r.run()
		synctest.Wait()
		require.Equal(t, []string{"add a/1@1"}, notified.take())
		_, err := source.DeleteSilently("a", "1")
		must(t, err, source.Apply(withUID(pod("a", "1"), "second")))
		source.BreakWatches(cachetest.ErrExpired())
		<-r.done
		assert.Equal(t, []string{"tombstone a/1"}, notified.take())
		assert.Equal(t, map[string]string{"a/1": "3"}, r.versions(), "readers are never behind handlers")
		source.Close()
	})
}
