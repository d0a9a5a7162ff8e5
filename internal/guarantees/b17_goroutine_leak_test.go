package guarantees

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/sharding"
)

// B17: a thousand runs leave no goroutine. Fails if a call of the source or a consumer outlives its
// run, even if it ends with the source, which the end of the bubble would not show.
func TestB17NoGoroutineOutlivesRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		before := goroutines()
		for range 1000 {
			r := newRig(t, source, nil)
			r.run()
			synctest.Wait()
			r.cancel()
			<-r.done
		}
		assert.Equal(t, before, goroutines())
		assert.Zero(t, source.ActiveWatches())
		source.Close()
	})
}

// S16: a panic in the source reaches the caller of Run with its stack. Fails if it ends another
// goroutine or is lost.
func TestAPanicOfTheSourceReachesTheCallerOfRun(t *testing.T) {
	source := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) { panic(errBoom) },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, errBoom
		},
	}
	indexer, reflector := cache.NewNamespaceKeyedIndexerAndReflector(source, nil, 0)
	for name, run := range map[string]func(){
		"reflector": func() { reflector.RunWithContext(context.Background()) },
		"controller": func() {
			cache.New(&cache.Config{ListerWatcher: source, Store: indexer}).RunWithContext(context.Background())
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				panicked, ok := recover().(*cache.PanicError)
				require.True(t, ok)
				assert.ErrorIs(t, panicked, errBoom)
				assert.Contains(t, panicked.Error(), "TestAPanicOfTheSourceReachesTheCallerOfRun.func1")
			}()
			run()
		})
	}
}

// A panic of the consumer ends the whole controller and reaches the caller of Run.
func TestAPanicOfProcessReachesTheCallerOfRun(t *testing.T) {
	source := cachetest.NewSource(cachetest.Options{})
	require.NoError(t, source.Apply(pod("a", "1")))
	defer source.Close()
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})
	controller := cache.New(&cache.Config{Queue: queue, ListerWatcher: source, Process: func(any, bool) error { panic(errBoom) }})
	defer func() {
		panicked, ok := recover().(*cache.PanicError)
		require.True(t, ok)
		assert.True(t, errors.Is(panicked, errBoom))
	}()
	controller.RunWithContext(context.Background())
}

// B17, S16: a panic of the source or of any user function comes out of Run, and no goroutine is
// left: the bubble ends, every watch was stopped and its context ended. A panic of another
// goroutine has its stack.
func TestB17APanicAnywhereLeavesNoGoroutine(t *testing.T) {
	boomOnReport := cache.ReflectorOptions{ErrorHandler: func(context.Context, *cache.Reflector, error) { panic(errBoom) }}
	streaming := func(o cache.ReflectorOptions) cache.ReflectorOptions { o.Strategy = cache.ListStreaming; return o }
	nilChan := func() (<-chan watch.Event, bool) { panic(errBoom) }
	closed := func() *recordedWatch { p := newRecordedWatch(); close(p.events); return p }
	for name, row := range map[string]struct {
		probe   *recordedWatch
		options cache.ReflectorOptions
		typed   bool
	}{
		"Watch":                          {nil, cache.ReflectorOptions{}, true},
		"ResultChan":                     {&recordedWatch{onResultChan: nilChan}, cache.ReflectorOptions{}, true},
		"ResultChan, then Stop":          {&recordedWatch{onResultChan: nilChan, onStop: func() { panic("Stop") }}, cache.ReflectorOptions{}, true},
		"ResultChan of a stream":         {&recordedWatch{onResultChan: nilChan}, streaming(cache.ReflectorOptions{}), true},
		"Stop":                           {func() *recordedWatch { p := closed(); p.onStop = func() { panic(errBoom) }; return p }(), cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle}, true},
		"error handler":                  {newRecordedWatch(watch.Event{Type: watch.Added}), boomOnReport, false},
		"error handler, for a slow Stop": {func() *recordedWatch { p := closed(); p.onStop = func() { time.Sleep(time.Minute) }; return p }(), boomOnReport, false},
		"error handler during a stream":  {newRecordedWatch(watch.Event{Type: "UNKNOWN"}), streaming(boomOnReport), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var contexts []context.Context
				source := &funcSource{watch: func(ctx context.Context, _ int) (watch.Interface, error) {
					contexts = append(contexts, ctx)
					if row.probe == nil {
						panic(errBoom)
					}
					return row.probe, nil
				}}
				r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), row.options)
				func() {
					defer func() {
						value := recover()
						panicked, typed := value.(*cache.PanicError)
						assert.Equal(t, row.typed, typed, "%T", value)
						if typed {
							assert.ErrorIs(t, panicked, errBoom)
							assert.Contains(t, string(panicked.Stack), "b17_goroutine_leak_test.go")
						}
					}()
					r.Run(make(chan struct{}))
				}()
				for _, ctx := range contexts {
					assert.Error(t, ctx.Err(), "the watch's context has ended")
				}
				if row.probe != nil {
					assert.False(t, row.probe.stopped.IsZero(), "the watch was stopped")
				}
				assert.Equal(t, cache.PhaseStopped, r.Status().Phase)
			})
		})
	}
}

// B17: after a panic of the store Run ends the running call of the source and waits for it. Fails
// if the call continues.
func TestB17APanicDuringACallWaitsForTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		source := &funcSource{watch: func(ctx context.Context, _ int) (watch.Interface, error) {
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return nil, ctx.Err()
		}}
		r := cache.NewReflectorWithOptions(source, nil, &resyncPanics{Store: cache.NewStore(cache.MetaNamespaceKeyFunc)}, cache.ReflectorOptions{
			ResyncPeriod: time.Minute, ErrorHandler: (&errorRecorder{}).handle})
		assert.PanicsWithValue(t, "boom", func() { r.Run(make(chan struct{})) })
		assert.True(t, ended)
	})
}

type resyncPanics struct{ cache.Store }

func (*resyncPanics) Resync() error { panic("boom") }

// B17, S16: a panic of the source, also before an item, or of the store, comes out of Run, and no
// goroutine is left.
func TestB17APanicInAListItemByItemLeavesNoGoroutine(t *testing.T) {
	for _, item := range []int{0, 1, 150} {
		synctest.Test(t, func(t *testing.T) {
			source := &itemSource{Source: filledSource(t, 300), each: func(_ context.Context, _, n int) error {
				if n == item {
					panic(errBoom)
				}
				return nil
			}}
			r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{Strategy: cache.ListUnpaged})
			func() {
				defer func() {
					panicked, typed := recover().(*cache.PanicError)
					require.True(t, typed)
					assert.ErrorIs(t, panicked, errBoom)
					assert.Contains(t, string(panicked.Stack), "b17_goroutine_leak_test.go")
				}()
				r.Run(make(chan struct{}))
			}()
			assert.Equal(t, cache.PhaseStopped, r.Status().Phase)
			source.Close()
		})
	}
	t.Run("of the store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ended := false
			source := &itemFuncSource{list: func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
				err := takeAll(take, metav1.ListMeta{}, 1, 1000)
				time.Sleep(time.Second)
				ended = true
				return metav1.ListMeta{}, err
			}}
			store := &partStore{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), onPart: func(context.Context, cache.ReplacementPart) error { panic("boom") }}
			assert.PanicsWithValue(t, "boom", func() { cache.NewReflector(source, nil, store, 0).Run(make(chan struct{})) })
			assert.True(t, ended, "the call is waited for")
		})
	})
}

// A panic in one namespace ends the others, which Run waits for, and comes out of Run with its stack.
func TestB17APanicInOneNamespaceComesOutOfRunAndEndsTheOthers(t *testing.T) {
	logged := utilruntime.PanicHandlers
	utilruntime.PanicHandlers = nil
	defer func() { utilruntime.PanicHandlers = logged }()
	for name, change := range map[string]func(*cache.Config){
		"of the source": func(c *cache.Config) {
			c.Namespaces["b"] = &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (apiruntime.Object, error) {
					time.Sleep(time.Minute)
					panic(errBoom)
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, errBoom },
			}
		},
		"of the error handler": func(c *cache.Config) {
			c.Namespaces["b"] = &cache.ListWatch{}
			c.ReflectorOptions.ErrorHandler = func(context.Context, *cache.Reflector, error) { panic(errBoom) }
		},
		"of the handler": func(c *cache.Config) {
			c.Handler = cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				if obj.(*object).Namespace == "b" {
					panic(errBoom)
				}
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachNamespaceRig(t, func(t *testing.T, informer bool) {
				r := newNamespaceRig(t, informer, change)
				defer r.close()
				defer func() {
					panicked, ok := recover().(*cache.PanicError)
					require.True(t, ok)
					synctest.Wait()
					assert.ErrorIs(t, panicked, errBoom)
					assert.Contains(t, panicked.Error(), "TestB17APanicInOneNamespaceComesOutOfRunAndEndsTheOthers.func")
					assert.Zero(t, r.sources["a"].ActiveWatches()+r.sources["c"].ActiveWatches())
				}()
				r.ctlr.Run(make(chan struct{}))
			})
		})
	}
}

// A stream that has sent its first state is stopped if the context ends before it becomes the watch.
func TestB17AStreamIsStoppedIfTheContextEndsAsItIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := newRecordedWatch(watch.Event{Type: watch.Bookmark, Object: &object{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}})
		source := &funcSource{watch: func(context.Context, int) (watch.Interface, error) { return p, nil }}
		cache.NewReflectorWithOptions(source, nil, cancelsOnReplace{&foreignStore{}, cancel}, cache.ReflectorOptions{Strategy: cache.ListStreaming}).RunWithContext(ctx)
		assert.False(t, p.stopped.IsZero())
	})
}

type cancelsOnReplace struct {
	*foreignStore
	cancel context.CancelFunc
}

func (c cancelsOnReplace) Replace([]any, string) error { c.cancel(); return nil }

// goroutines returns the number of goroutines in the bubble once all others are blocked.
// Goroutines outside of the bubble, such as the runtime's, are not counted. That none is left
// at the end is checked by synctest.
func goroutines() int {
	synctest.Wait()
	all := make([]byte, 1<<20)
	n := runtime.Stack(all, true)
	for ; n == len(all); n = runtime.Stack(all, true) {
		all = make([]byte, 2*len(all))
	}
	return bytes.Count(all[:n], []byte(", synctest bubble "))
}

// 10,000 started and stopped informers, with handlers that stay, are removed or receive nothing,
// leave no goroutine and no memory, although the source, the handler and the registrations'
// checkers still exist.
func TestTenThousandStartsAndStopsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := sampleOf(10_000)
		source := newBulkSource(3)
		notified := &countingHandler{}
		before := goroutines()
		// The store references the index functions, the informer's reflector the error handler.
		var stores []weak.Pointer[countingHandler]
		var informers []weak.Pointer[errorRecorder]
		for i := range runs {
			indexed, errs := &countingHandler{}, &errorRecorder{}
			stores, informers = append(stores, weak.Make(indexed)), append(informers, weak.Make(errs))
			oneLife(t, cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{
				Indexes: cache.TypedIndexers[*object]{"counted": func(*object) ([]string, error) {
					indexed.count(callCounts{adds: 1})
					return nil, nil
				}},
				ReflectorOptions: cache.ReflectorOptions{ErrorHandler: errs.handle},
			}), notified, i)
		}
		assert.LessOrEqual(t, goroutines(), before)
		assert.Positive(t, notified.count(callCounts{}).adds)
		runtime.GC()
		runtime.GC()
		alive := 0
		for i := range stores {
			if stores[i].Value() != nil || informers[i].Value() != nil {
				alive++
			}
		}
		// The last one may still be on a stack.
		assert.LessOrEqual(t, alive, 1)
		runtime.KeepAlive(source)
	})
}

func oneLife(t *testing.T, inf *cache.Informer[*object], notified cache.ResourceEventHandler, i int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, err := inf.Shared().AddEventHandler(notified)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	if i%3 > 0 { // or it is stopped before anything
		must(t, inf.WaitSynced(ctx))
		<-first.HasSyncedChecker().Done()
		second, err := inf.Shared().AddEventHandler(cache.ResourceEventHandlerFuncs{})
		must(t, err)
		if i%3 == 1 {
			must(t, inf.RemoveHandler(first), inf.ShutDownHandler(second))
		}
	}
	cancel()
	must(t, <-done)
}

// listWithoutShardInfo is a list whose shard cannot be read.
type listWithoutShardInfo struct {
	metav1.PartialObjectMetadataList
}

func (*listWithoutShardInfo) GetShardInfo() *metav1.ShardInfo { panic(errBoom) }
func (*listWithoutShardInfo) SetShardInfo(*metav1.ShardInfo)  {}

// Fails if a panic of a list's GetShardInfo ends the run.
func TestAListWhoseShardCannotBeReadFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &cache.ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
			return &listWithoutShardInfo{metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}}, nil
		}}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			ShardSelector: sharding.NewSelector(),
		})
		var panicked *cache.PanicError
		require.ErrorAs(t, r.ListAndWatchWithContext(t.Context()), &panicked)
		require.Equal(t, errBoom, panicked.Value)
	})
}
