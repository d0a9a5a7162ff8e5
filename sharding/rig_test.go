package sharding_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/sharding"
)

type object = metav1.PartialObjectMetadata

// order returns an object with a new UID.
func order(name string) *object {
	return &object{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop",
			Name:      name,
			UID:       types.UID(fmt.Sprintf("%016x-%016x", rand.Uint64(), rand.Uint64())),
		},
	}
}

// orders creates that many objects, or updates them.
func orders(t *testing.T, source *cachetest.Source, count int) {
	for i := range count {
		obj, err := source.Get("shop", fmt.Sprint("order-", i))
		if err != nil {
			obj = order(fmt.Sprint("order-", i))
		}
		obj.(*object).Labels = map[string]string{"v": fmt.Sprint(rand.Int())}
		require.NoError(t, source.Apply(obj))
	}
}

// view is a handler's knowledge: the object of each key, and notifications that contradict earlier
// ones.
type view struct {
	mu       sync.Mutex
	objects  map[string]*object
	mistakes []string
	calls    int
}

func newView() *view { return &view{objects: map[string]*object{}} }

func (v *view) OnAdd(obj any, _ bool)  { v.put("add", obj.(*object), false) }
func (v *view) OnUpdate(_, newObj any) { v.put("update", newObj.(*object), true) }

func (v *view) put(event string, obj *object, expected bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := obj.Namespace + "/" + obj.Name
	v.calls++
	if before, known := v.objects[key]; known != expected || known && before.UID != obj.UID {
		v.mistakes = append(v.mistakes, fmt.Sprintf("%s of %s, known: %t", event, key, known))
	}
	v.objects[key] = obj
}

func (v *view) OnDelete(obj any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	v.calls++
	last := obj
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		last = tombstone.Obj
	}
	before, known := v.objects[key]
	if final, ok := last.(*object); err != nil || !known || !ok || final.UID != before.UID {
		v.mistakes = append(
			v.mistakes, fmt.Sprintf("delete of %s with %v, known: %t", key, last, known))
	}
	delete(v.objects, key)
}

// content returns the version of each object by its key.
func (v *view) content() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return versions(maps.Values(v.objects))
}

func (v *view) check(t *testing.T) {
	v.mu.Lock()
	defer v.mu.Unlock()
	require.Empty(t, v.mistakes)
}

func versions(objects func(func(*object) bool)) map[string]string {
	all := map[string]string{}
	for obj := range objects {
		all[obj.Namespace+"/"+obj.Name] = string(obj.UID) + " at " + obj.ResourceVersion
	}
	return all
}

// truth returns the content of a source.
func truth(source *cachetest.Source) map[string]string {
	return versions(func(yield func(*object) bool) {
		for _, obj := range source.Objects() {
			if !yield(obj.(*object)) {
				return
			}
		}
	})
}

// replica is an informer with a share of the objects, and its handler's view.
type replica struct {
	selector *sharding.Selector
	informer *cache.Informer[*object]
	handle   cache.ResourceEventHandlerRegistration
	view     *view
	failures []error
	stop     func()
}

// newReplica runs an informer until stop or the end of the test.
func newReplica(
	t *testing.T, source cache.Source, options cache.ReflectorOptions, ranges ...sharding.Range,
) *replica {
	r := &replica{selector: sharding.NewSelector(ranges...), view: newView()}
	var mu sync.Mutex
	options.ShardSelector = r.selector
	options.Logger = new(klog.Logger{})
	options.ErrorHandler = func(_ context.Context, _ *cache.Reflector, err error) {
		mu.Lock()
		defer mu.Unlock()
		r.failures = append(r.failures, err)
	}
	r.informer = cache.NewTypedInformer(
		source, cache.InformerConfig[*object]{ReflectorOptions: options})
	var err error
	r.handle, err = r.informer.Shared().AddEventHandler(r.view)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.informer.Run(ctx) }()
	r.stop = func() { cancel(); <-done }
	t.Cleanup(r.stop)
	synctest.Wait()
	return r
}

// apply changes the ranges and waits until the handler has handled the changes.
func (r *replica) apply(t *testing.T, ranges ...sharding.Range) {
	require.NoError(t, r.selector.Apply(t.Context(), sharding.Union(ranges...)))
	require.NoError(
		t, r.informer.WaitForHandler(t.Context(), r.handle, r.informer.ResourceVersion()))
}

// requireShares checks that each object of the source is in the view and store of exactly one
// replica: the one that its hash selects.
func requireShares(t *testing.T, source *cachetest.Source, replicas ...*replica) {
	t.Helper()
	all := map[string]string{}
	for i, r := range replicas {
		r.view.check(t)
		content := r.view.content()
		require.Equal(t, content, versions(r.informer.Values()), "replica %d", i)
		for key, version := range content {
			require.NotContains(t, all, key, "is at two replicas")
			all[key] = version
			obj, _ := r.informer.Lookup(key)
			require.True(t, r.selector.Includes(obj), key)
		}
	}
	require.Equal(t, truth(source), all)
}
