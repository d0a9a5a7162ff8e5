package clientgo_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
)

// podSource returns a source of pods with these names, whose first list is not streamed.
func podSource(t *testing.T, names ...string) *cachetest.Source {
	t.Helper()
	source := cachetest.NewSource(cachetest.Options{
		NewList:              func() runtime.Object { return &corev1.PodList{} },
		WatchListUnsupported: true,
	})
	t.Cleanup(source.Close)
	for _, name := range names {
		require.NoError(t, source.Apply(pod(name, "")))
	}
	return source
}

// podInformer returns an informer of pods, as client-go's type and as this library's.
func podInformer(
	source *cachetest.Source,
) (theirs toolscache.SharedIndexInformer, ours cache.SharedIndexInformer) {
	ours = cache.NewSharedIndexInformerWithOptions(
		source,
		&corev1.Pod{},
		cache.SharedIndexInformerOptions{
			Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			ReflectorOptions: cache.ReflectorOptions{
				Name:         "pods",
				ErrorHandler: func(context.Context, *cache.Reflector, error) {},
			},
		},
	)
	return clientgo.SharedIndexInformer(ours), ours
}

// run runs an informer until end is called or the test ends, and waits for the first list.
func run(t *testing.T, informer toolscache.SharedIndexInformer) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	synctest.Wait()
	end = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(end)
	return end
}

// recorder is a handler written for client-go: it knows client-go's tombstones, and nothing of this
// library.
type recorder struct {
	mu  sync.Mutex
	got []string
}

func (r *recorder) OnAdd(obj any, isInInitialList bool) {
	r.note("add %s, initial %t", obj.(*corev1.Pod).Name, isInInitialList)
}

func (r *recorder) OnUpdate(oldObj, newObj any) {
	r.note(
		"update %s from %s to %s", newObj.(*corev1.Pod).Name, oldObj.(*corev1.Pod).ResourceVersion,
		newObj.(*corev1.Pod).ResourceVersion)
}

func (r *recorder) OnDelete(obj any) {
	if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		r.note("tombstone %s of %s", tombstone.Key, tombstone.Obj.(*corev1.Pod).Name)
		return
	}
	r.note("delete %s", obj.(*corev1.Pod).Name)
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, fmt.Sprintf(format, args...))
}

// take returns the calls since its last call.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// loseSightOf removes a pod without an event and makes the informer relist.
func loseSightOf(t *testing.T, source *cachetest.Source, name string) {
	t.Helper()
	_, err := source.DeleteSilently("shop", name)
	require.NoError(t, err)
	source.CompactAll()
	source.BreakWatches(cachetest.ErrExpired())
	time.Sleep(time.Minute) // longer than any backoff
	synctest.Wait()
}
