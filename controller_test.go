package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

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
				assert.Equal(t, []Cause{causeProcess}, r.heard.causes())
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
		assert.Equal(t, []Cause{causeObject}, r.heard.causes())
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
	r.report(t.Context(), errBoom)
	assert.Len(t, plain, 1)
	assert.Empty(t, with)
	config.WatchErrorHandler = nil
	New(&config).(*controller).reflector.report(t.Context(), errBoom)
	assert.Len(t, with, 1)
}

var (
	_ apiruntime.Object = (*object)(nil)
	_                   = errors.Is
)

// A queue's first list tells of everything that is listed, also of what the store
// held before: whoever consumes this queue has not been told of it.
func TestAHandlerOfAFilledStoreIsNotifiedOfTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		first := newRig(t, source, nil)
		first.run()
		synctest.Wait()
		first.cancel()
		<-first.done
		second := newRig(t, source, func(c *Config) { c.Store = first.indexer })
		second.run()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"update a/1@1", "update a/2@2"}, second.handler.take())
		second.stop()
	})
}

// A panic of a user's function is one line in the message, and its stack is kept
// for nobody: there may be one for each of many objects.
func TestAQuarantinedPanicKeepsNoStack(t *testing.T) {
	indexer := NewIndexer(MetaNamespaceKeyFunc, Indexers{"panics": func(any) ([]string, error) { panic(errBoom) }})
	err := indexer.Add(pod("a", "1"))
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Contains(t, string(panicked.Stack), "controller_test.go")
	assert.Less(t, len(err.Error()), 200)
	assert.False(t, strings.Contains(err.Error(), "\n"))
	held := quarantinedIn(indexer)
	require.Len(t, held, 1)
	require.ErrorAs(t, held[0].Err, &panicked)
	assert.Empty(t, panicked.Stack)
	assert.ErrorIs(t, held[0].Err, errBoom)
	assert.Contains(t, held[0].Err.Error(), "boom")
}

// The controller gives the memory of a large batch back, and holds none of its
// objects.
func TestAControllerKeepsNothingOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 3000 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *Config) { c.ReflectorOptions.Strategy = ListWhole })
		r.run()
		synctest.Wait()
		outcomes := r.ctlr.(*controller).changes
		assert.LessOrEqual(t, cap(outcomes), keptCapacity)
		for _, o := range outcomes[:cap(outcomes)] {
			require.Nil(t, o.object)
			require.Nil(t, o.old)
		}
		r.stop()
	})
}

// bad marks an object that a user function is to fail on.
func bad(o *object) *object { return labelled(o, "bad") }

func isBad(obj any) bool {
	o, ok := obj.(*object)
	return ok && o.Labels["v"] == "bad"
}

// Objects that the reflector does not pass on: of the wrong type or kind, nil,
// without metadata. Reported and skipped, in lists and in events; the rest goes on.
func TestObjectsThatDoNotFitAreReportedAndSkipped(t *testing.T) {
	noMeta := &metav1.Status{Status: "no metadata of its own"}
	wrongType := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "a", "name": "wrong", "resourceVersion": "8", "uid": "w"},
	}}
	t.Run("event", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := newSource(t, pod("a", "1"))
			r := newRig(t, source, nil)
			r.run()
			synctest.Wait()
			unknown := pod("a", "unknown")
			unknown.ResourceVersion = "9"
			source.Inject(watch.Event{Type: watch.Added, Object: wrongType})
			source.Inject(watch.Event{Type: watch.Modified, Object: noMeta})
			source.Inject(watch.Event{Type: watch.Modified, Object: nil})
			source.Inject(watch.Event{Type: "GONE", Object: unknown})
			synctest.Wait()
			stages := map[string]int{}
			for _, err := range r.heard.all() {
				var object *ObjectError
				require.ErrorAs(t, err, &object)
				require.NotEmpty(t, object.Key)
				stages[object.Stage]++
			}
			assert.Equal(t, 2, stages[stageType])
			assert.Equal(t, 2, stages[stageMetadata])
			assert.Equal(t, "9", r.ctlr.LastSyncResourceVersion(), "their versions count")
			require.NoError(t, source.Apply(pod("a", "2")))
			synctest.Wait()
			assert.Contains(t, r.versions(), "a/2")
			assert.Equal(t, 1, source.ListCalls())
			r.stop()
		})
	})
	t.Run("list", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			items := []apiruntime.Object{pod("a", "1"), wrongType, noMeta, nil, (*object)(nil), pod("a", "2")}
			h := &heard{}
			source := &ListWatch{ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
				return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}, Items: slices.Clone(items)}, nil
			}, WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
				w := watch.NewFake()
				context.AfterFunc(ctx, w.Stop)
				return w, nil
			}}
			indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
			previous := pod("a", "wrong")
			require.NoError(t, indexer.Add(previous))
			// A first list would delete nothing that it has not seen come; a
			// committed one makes the next a relist.
			require.NoError(t, indexer.Replace([]any{previous}, "1"))
			reflector := NewReflectorWithOptions(source, &object{}, indexer, ReflectorOptions{Name: "n", ErrorHandler: h.handle})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); reflector.RunWithContext(ctx) }()
			synctest.Wait()
			assert.ElementsMatch(t, []string{"a/1", "a/2", "a/wrong"}, indexer.ListKeys(), "the previous state of a misfit stays")
			assert.Len(t, h.all(), 4)
			assert.Len(t, reflector.Status().Quarantined, 4)
			assert.Equal(t, "10", indexer.LastStoreSyncResourceVersion())
			cancel()
			<-done
		})
	})
	t.Run("wrong kind", func(t *testing.T) {
		example := &unstructured.Unstructured{}
		example.SetAPIVersion("v1")
		example.SetKind("Pod")
		r := NewReflector(&ListWatch{}, example, NewIndexer(MetaNamespaceKeyFunc, nil), 0)
		assert.Equal(t, "/v1, Kind=Pod", r.TypeDescription())
		other := example.DeepCopy()
		other.SetKind("Node")
		other.SetName("n")
		assert.Nil(t, r.examine(example, &metadata{}, true))
		bad := r.examine(other, &metadata{}, true)
		require.NotNil(t, bad)
		var unexpected *UnexpectedTypeError
		require.True(t, errors.As(bad, &unexpected))
		assert.Contains(t, unexpected.Actual, "Node")
	})
}

// objectList is a list whose items are interfaces, which may be nil.
type objectList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []apiruntime.Object
}

func (l *objectList) DeepCopyObject() apiruntime.Object { return l }

// A re-created object is another object: its predecessor's end is told first.
func TestARecreatedObjectIsDeliveredAsDeletedAndAdded(t *testing.T) {
	for merge, want := range map[bool][]string{
		false: {"tombstone a/1", "add a/1@3"},
		true:  {"update a/1@3"},
	} {
		synctest.Test(t, func(t *testing.T) {
			source := newSource(t, pod("a", "1"))
			r := newRig(t, source, func(c *Config) { c.MergeRecreated = merge })
			r.run()
			synctest.Wait()
			r.handler.take()
			_, err := source.DeleteSilently("a", "1")
			require.NoError(t, err)
			require.NoError(t, source.Apply(pod("a", "1")))
			source.BreakWatches(cachetest.ErrExpired())
			sleep(time.Minute)
			assert.Equal(t, want, r.handler.take())
			r.stop()
		})
	}
}

// What is wrong at construction is a mistake in the program and panics there,
// naming the field.
func TestMistakesAtConstructionPanicAndNameTheField(t *testing.T) {
	source, store := &ListWatch{}, NewStore(MetaNamespaceKeyFunc)
	queue := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	process := func(any, bool) error { return nil }
	mistakes := map[string]func(){
		"ListerWatcher": func() { NewReflector(nil, nil, store, 0) },
		"store":         func() { NewReflector(source, nil, nil, 0) },
		"ResyncPeriod":  func() { NewReflector(source, nil, store, -1) },
		"PageSize":      func() { NewReflectorWithOptions(source, nil, store, ReflectorOptions{PageSize: -1}) },
		"MinWatchTimeout": func() {
			NewReflectorWithOptions(source, nil, store, ReflectorOptions{MinWatchTimeout: -time.Second})
		},
		"MaxWatchTimeout": func() {
			NewReflectorWithOptions(source, nil, store, ReflectorOptions{MinWatchTimeout: 2 * time.Second, MaxWatchTimeout: time.Second})
		},
		"Strategy":             func() { NewReflectorWithOptions(source, nil, store, ReflectorOptions{Strategy: 9}) },
		"Config.ListerWatcher": func() { New(&Config{Store: store}) },
		"neither":              func() { New(&Config{ListerWatcher: source}) },
		"Process":              func() { New(&Config{ListerWatcher: source, Queue: queue}) },
		"both":                 func() { New(&Config{ListerWatcher: source, Queue: queue, Process: process, Store: store}) },
		"Handler":              func() { New(&Config{ListerWatcher: source, Queue: queue, Process: process, Handler: &recorder{}}) },
		"Transform": func() {
			New(&Config{ListerWatcher: source, Queue: queueBefore(store), Store: store, Transform: func(any) (any, error) { return nil, nil }})
		},
		"KnownObjects": func() { New(&Config{ListerWatcher: source, Queue: queue, Store: store}) },
		"KeyFunction":  func() { New(&Config{ListerWatcher: source, Store: struct{ Store }{store}}) },
		"both set": func() {
			keep := func(obj any) (any, error) { return obj, nil }
			New(&Config{ListerWatcher: source, Store: NewStore(MetaNamespaceKeyFunc, WithTransformer(keep)), Transform: keep})
		},
		"Transformer and": func() {
			keep := func(obj any) (any, error) { return obj, nil }
			both := NewStore(MetaNamespaceKeyFunc, WithTransformer(keep))
			New(&Config{ListerWatcher: source, Store: both, Queue: NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: both, Transformer: keep})})
		},
		"KeyFunction needs": func() {
			New(&Config{ListerWatcher: source, Queue: queueBefore(store), Store: store, KeyFunction: MetaNamespaceKeyFunc})
		},
		"ListerWatcher is nil": func() { NewReflector((*ListWatch)(nil), nil, store, 0) },
		"store is nil":         func() { NewReflector(source, nil, (*DeltaFIFO)(nil), 0) },
		"Backoff.Duration": func() {
			NewReflectorWithOptions(source, nil, store, ReflectorOptions{Backoff: &wait.Backoff{}})
		},
		"Jitter": func() {
			NewReflectorWithOptions(source, nil, store, ReflectorOptions{Backoff: &wait.Backoff{Duration: 1, Jitter: math.NaN()}})
		},
		"below a second": func() {
			NewReflectorWithOptions(source, nil, store, ReflectorOptions{MaxWatchTimeout: time.Millisecond})
		},
		"DeltaFIFO":                 func() { New(&Config{ListerWatcher: source, Queue: foreignQueue{queue}, Store: store}) },
		"ReflectorOptions.PageSize": func() { New(&Config{ListerWatcher: source, Store: store, WatchListPageSize: -1}) },
	}
	for field, mistake := range mistakes {
		t.Run(field, func(t *testing.T) {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), field) }()
			mistake()
			t.Error("it did not panic")
		})
	}
	t.Run("set on the field later: reported, and taken as unset", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, h := newSource(t, pod("a", "1")), &heard{}
			reflector := NewReflectorWithOptions(source, nil, store, ReflectorOptions{ErrorHandler: h.handle})
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

func queueBefore(store Store) *DeltaFIFO {
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: store})
}

// foreignQueue hides what a DeltaFIFO is.
type foreignQueue struct{ Queue }
