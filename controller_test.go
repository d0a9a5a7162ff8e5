package cache

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// surviving makes apimachinery's panic handlers let the process live.
func surviving(t *testing.T) {
	before, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = before, handlers })
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
	reflector := func() *Reflector { return New(&config).running.(*sharedIndexInformer).feeds[0].reflector }
	r := reflector()
	assert.Equal(t, "things", r.TypeDescription())
	assert.Equal(t, "kept", r.Name())
	assert.Equal(t, int64(9), r.WatchListPageSize)
	assert.Equal(t, 7*time.Minute, r.options.MinWatchTimeout)
	assert.Equal(t, 14*time.Minute, r.options.MaxWatchTimeout)
	r.report(t.Context(), errBoom)
	assert.Len(t, plain, 1)
	assert.Empty(t, with)
	config.WatchErrorHandler = nil
	reflector().report(t.Context(), errBoom)
	assert.Len(t, with, 1)
}

var (
	_ apiruntime.Object = (*object)(nil)
	_                   = errors.Is
)

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

// Objects that the reflector does not pass on: of the wrong type or kind, nil,
// without metadata. Reported and skipped, in lists and in events; the rest continues.
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
			assert.ElementsMatch(t, []string{"a/1", "a/2", "a/wrong"}, indexer.ListKeys(), "the previous state of a refused object stays")
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
