package clientgo_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/kubeapi"
)

// sourceMakers are the ways to make a source from a config.
var sourceMakers = map[string]func(*testing.T, *rest.Config) conformance.ListerWatcher{
	"of a config": func(t *testing.T, config *rest.Config) conformance.ListerWatcher {
		return sourceOf(t, config, typedPods)
	},
	"of a client": func(t *testing.T, config *rest.Config) conformance.ListerWatcher {
		return sourceOfClient(t, clientOf(t, *config), typedPods)
	},
	"ListWatch of a client": func(t *testing.T, config *rest.Config) conformance.ListerWatcher {
		return clientgo.NewListWatchFromClient(clientOf(t, *config), "pods", "shop", nil)
	},
	"ListWatch of a client that streams": func(t *testing.T, config *rest.Config) conformance.ListerWatcher {
		source := clientgo.NewListWatchFromClient(clientOf(t, *config), "pods", "shop", nil)
		return cache.ToListerWatcherWithContext(
			cache.ToListWatcherWithWatchListSemantics(source, streams{}))
	},
}

func typedPods(o *kubeapi.Options) { o.ObjectType = &corev1.Pod{} }

// streams declares that it can stream lists.
type streams struct{}

func (streams) IsWatchListSemanticsUnSupported() bool { return false }

func TestSourcesOfClientGoKeepThePromisesOfAListerWatcher(t *testing.T) {
	for name, makeSource := range sourceMakers {
		t.Run(name, func(t *testing.T) {
			conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
				Virtual: true,
				New: func(tb testing.TB) conformance.ListerWatcherRig {
					backend, handler := podBackend(tb)
					server := cachetest.NewServer(handler)
					tb.Cleanup(server.Close)
					// QPS: with the default limit of client-go, the test would mostly wait.
					config := &rest.Config{
						Host:      server.URL,
						Transport: server.Client().Transport,
						QPS:       -1,
					}
					return conformance.RigOver(backend, "shop", makeSource(tb.(*testing.T), config))
				},
			})
		})
	}
}

func TestSourceOverASocketKeepsThePromisesOfAListerWatcher(t *testing.T) {
	conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
		Patience: time.Minute,
		New: func(tb testing.TB) conformance.ListerWatcherRig {
			backend, handler := podBackend(tb)
			server := serve(tb.(*testing.T), handler)
			tb.Cleanup(server.CloseClientConnections)
			source := sourceOf(tb.(*testing.T), &rest.Config{Host: server.URL, QPS: -1}, typedPods)
			return conformance.RigOver(backend, "shop", source)
		},
	})
}

func podBackend(t testing.TB) (*cachetest.Source, *cachetest.Handler) {
	backend := cachetest.NewSource(cachetest.Options{
		NewList: func() runtime.Object { return &corev1.PodList{} },
	})
	t.Cleanup(backend.Close)
	return backend, cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: pods, Kind: "Pod", Source: backend}},
	})
}

// The suite accepts any store. This package's stores must pass the same checks as the library's
// own, client-go's those that apply to them.
func TestIndexersOfClientGoKeepThePromisesOfAStore(t *testing.T) {
	for name, config := range map[string]conformance.StoreConfig{
		"presented": {
			New: func(testing.TB) conformance.ReflectorStore {
				return clientgo.Indexer(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil))
			},
			SharedIndexers: true,
		},
		"their own": {
			New: func(testing.TB) conformance.ReflectorStore {
				return toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{})
			},
			SharedIndexers: true,
			NoIndexErrors:  true,
		},
	} {
		t.Run(name, func(t *testing.T) { conformance.TestStore(t, config) })
	}
}
