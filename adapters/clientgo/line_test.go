package clientgo_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clientgocache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// A source implements the interfaces of both packages.
var (
	_ cache.ListerWatcher                    = (*kubeapi.ListerWatcher)(nil)
	_ cache.ListerWatcherWithContext         = (*kubeapi.ListerWatcher)(nil)
	_ clientgocache.ListerWatcher            = (*kubeapi.ListerWatcher)(nil)
	_ clientgocache.ListerWatcherWithContext = (*kubeapi.ListerWatcher)(nil)
)

// cluster is a server in virtual time, with pods that can be changed, over HTTP with a token.
type cluster struct {
	*cachetest.Source
	server *cachetest.Server
}

func newCluster(options cachetest.Options) *cluster {
	source := cachetest.NewSource(options)
	handler := cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: pods, Kind: "Pod", Source: source}},
		Token:     "s3cret",
	})
	return &cluster{Source: source, server: cachetest.NewServer(handler)}
}

func (c *cluster) config() *rest.Config {
	return &rest.Config{
		Host:        c.server.URL,
		BearerToken: "s3cret",
		Dial:        c.server.Listener.DialContext,
	}
}

func (c *cluster) close() {
	c.server.Close()
	c.Source.Close()
}

// inCluster runs a test in virtual time, with a source of each maker.
func inCluster(t *testing.T, test func(*testing.T, *cluster, *kubeapi.ListerWatcher)) {
	typed := func(o *kubeapi.Options) { o.ObjectType = &corev1.Pod{} }
	for way, source := range map[string]func(*testing.T, *rest.Config) *kubeapi.ListerWatcher{
		"config": func(t *testing.T, c *rest.Config) *kubeapi.ListerWatcher { return sourceOf(t, c, typed) },
		"client": func(t *testing.T, c *rest.Config) *kubeapi.ListerWatcher {
			return sourceOfClient(t, clientOf(t, *c), typed)
		},
	} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(
					cachetest.Options{NewList: func() runtime.Object { return &corev1.PodList{} }})
				defer cluster.close()
				config := cluster.config()
				// Shorter than any watch.
				config.Timeout = time.Second
				test(t, cluster, source(t, config))
			})
		})
	}
}

func TestAMirrorOfAClusterSyncsAndFollows(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *cluster, source *kubeapi.ListerWatcher) {
		require.NoError(t, cluster.Apply(pod("web-0", ""), pod("web-1", "")))
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		controller := cache.New(
			&cache.Config{ListerWatcher: source, Store: store, ObjectType: &corev1.Pod{}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { controller.RunWithContext(ctx) })
		synctest.Wait()
		require.True(t, controller.HasSynced())
		assert.ElementsMatch(t, []string{"shop/web-0", "shop/web-1"}, store.ListKeys())

		_, err := cluster.Delete("shop", "web-0")
		require.NoError(t, err)
		require.NoError(t, cluster.Apply(pod("web-2", "")))
		synctest.Wait()
		assert.ElementsMatch(t, []string{"shop/web-1", "shop/web-2"}, store.ListKeys())
		object, exists, err := store.GetByKey("shop/web-2")
		require.NoError(t, err)
		require.True(t, exists)
		assert.Equal(t, "main", object.(*corev1.Pod).Spec.Containers[0].Name)
		cancel()
		running.Wait()
	})
}

func TestClientGosOwnInformerAcceptsTheSource(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *cluster, source *kubeapi.ListerWatcher) {
		require.NoError(t, cluster.Apply(pod("web-0", ""), pod("web-1", "")))
		informer := clientgocache.NewSharedIndexInformer(
			source, &corev1.Pod{}, 0, clientgocache.Indexers{})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		time.Sleep(time.Second)
		require.True(t, informer.HasSynced())
		assert.ElementsMatch(
			t, []string{"shop/web-0", "shop/web-1"}, informer.GetStore().ListKeys())

		_, err := cluster.Delete("shop", "web-0")
		require.NoError(t, err)
		time.Sleep(time.Second)
		assert.Equal(t, []string{"shop/web-1"}, informer.GetStore().ListKeys())
		cancel()
		running.Wait()
	})
}

// unstreamed is a source that client-go's reflectors list.
type unstreamed struct{ *kubeapi.ListerWatcher }

func (unstreamed) IsWatchListSemanticsUnSupported() bool { return true }

func TestClientGosInformerKeepsOutWhatCannotBeDecodedOnlyByATransform(t *testing.T) {
	for name, test := range map[string]struct {
		transform clientgocache.TransformFunc
		synced    bool
	}{
		"without": {nil, true},
		"with one": {func(object any) (any, error) {
			if undecoded, ok := object.(*kubeapi.UndecodableObject); ok {
				return nil, undecoded.DecodeError()
			}
			return object, nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCluster(cachetest.Options{})
				defer cluster.close()
				require.NoError(t, cluster.Apply(&unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Pod",
					"metadata": map[string]any{"namespace": "shop", "name": "bad"}, "spec": "none",
				}}))
				source := sourceOf(
					t, cluster.config(), func(o *kubeapi.Options) { o.ObjectType = &corev1.Pod{} })
				informer := clientgocache.NewSharedIndexInformer(
					unstreamed{source}, &corev1.Pod{}, 0, clientgocache.Indexers{})
				require.NoError(t, informer.SetTransform(test.transform))
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { informer.RunWithContext(ctx) })
				time.Sleep(time.Second)
				assert.Equal(t, test.synced, informer.HasSynced())
				if test.synced {
					object, exists, err := informer.GetStore().GetByKey("shop/bad")
					require.NoError(t, err)
					require.True(t, exists)
					assert.IsType(t, &kubeapi.UndecodableObject{}, object)
				}
				cancel()
				running.Wait()
			})
		})
	}
}

// The package documentation describes this fault of client-go. If this test fails, client-go has
// fixed it, and the documentation must change.
func TestClientGosInformerKeepsWhatWasDeletedIfTheDeletionCannotBeDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCluster(cachetest.Options{})
		defer cluster.close()
		state := func(name string, spec any) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod",
				"metadata": map[string]any{"namespace": "shop", "name": name}, "spec": spec,
			}}
		}
		require.NoError(t, cluster.Apply(state("web-0", map[string]any{})))
		source := sourceOf(
			t, cluster.config(), func(o *kubeapi.Options) { o.ObjectType = &corev1.Pod{} })
		informer := clientgocache.NewSharedIndexInformer(
			source, &corev1.Pod{}, 0, clientgocache.Indexers{})
		transformed := 0
		require.NoError(t, informer.SetTransform(func(object any) (any, error) {
			if bad, undecoded := object.(*kubeapi.UndecodableObject); undecoded &&
				bad.Name == "web-0" {
				transformed++
			}
			return object, nil
		}))
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		controller := cache.New(
			&cache.Config{ListerWatcher: source, Store: store, ObjectType: &corev1.Pod{}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.RunWithContext(ctx) })
		running.Go(func() { controller.RunWithContext(ctx) })
		time.Sleep(time.Second)
		require.Equal(t, []string{"shop/web-0"}, informer.GetStore().ListKeys())
		require.Equal(t, []string{"shop/web-0"}, store.ListKeys())

		// The first event may have been damaged in transit, and is requested again.
		require.NoError(t, cluster.Apply(state("web-1", "none")))
		time.Sleep(20 * time.Second)
		require.NoError(t, cluster.Apply(state("web-0", "none")))
		_, err := cluster.Delete("shop", "web-0")
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Contains(t, informer.GetStore().ListKeys(), "shop/web-0")
		assert.Zero(t, transformed)
		assert.Empty(t, store.ListKeys(), "the reflectors of this library delete it")
		cancel()
		running.Wait()
	})
}

// client-go's clients apply the Timeout to watches too.
func TestATimeoutOfTheConfigCutsNoWatch(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *cluster, source *kubeapi.ListerWatcher) {
		require.NoError(t, cluster.Apply(pod("web-0", "")))
		stream, err := source.WatchWithContext(
			t.Context(), metav1.ListOptions{ResourceVersion: "1"})
		require.NoError(t, err)
		defer stream.Stop()
		time.Sleep(time.Minute)
		require.NoError(t, cluster.Apply(pod("web-1", "")))
		event, open := <-stream.ResultChan()
		require.True(t, open)
		assert.Equal(t, "web-1", event.Object.(*corev1.Pod).Name)
	})
}
