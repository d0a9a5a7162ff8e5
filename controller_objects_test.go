package cache

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

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
			stages := map[Stage]int{}
			for _, err := range r.heard.all() {
				var object *ObjectError
				require.ErrorAs(t, err, &object)
				require.NotEmpty(t, object.Key)
				stages[object.Stage]++
			}
			assert.Equal(t, 2, stages[StageType])
			assert.Equal(t, 2, stages[StageMetadata])
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
func TestARecreatedObjectIsToldAsDeletedAndAdded(t *testing.T) {
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
