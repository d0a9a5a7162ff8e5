package conformance_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/kubeapi"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// A source with its own backend needs a rig that changes the backend. Here the catalogue is both; yours has a database
// or a server as backend.
func ExampleTestListerWatcher() {
	var t *testing.T // the calling test's

	conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
		Virtual: true,
		New: func(t testing.TB) conformance.ListerWatcherRig {
			catalogue := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
			t.Cleanup(catalogue.Close)
			marked := func(name, mark string) *metav1.PartialObjectMetadata {
				object := &metav1.PartialObjectMetadata{}
				object.SetGroupVersionKind(podKind)
				object.Namespace = "default"
				object.Name = name
				object.Annotations = map[string]string{conformance.MarkAnnotation: mark}
				return object
			}
			return conformance.ListerWatcherRig{
				Source: catalogue,
				Create: func(name, mark string) error {
					_, err := catalogue.Create(marked(name, mark))
					return err
				},
				Update: func(name, mark string) error {
					_, err := catalogue.Update(marked(name, mark))
					return err
				},
				Delete: func(name string) error {
					_, err := catalogue.Delete("default", name)
					return err
				},
				// Without Compact, EndWatches and SendBookmarks the suite skips the checks that need them, and prints
				// the reason.
			}
		},
	})
}

// A client of an API server is checked with a server in memory, in virtual time.
func ExampleRigOver() {
	var t *testing.T // the calling test's

	conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
		Virtual: true,
		New: func(t testing.TB) conformance.ListerWatcherRig {
			backend := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
			t.Cleanup(backend.Close)
			pods := podKind.GroupVersion().WithResource("pods")
			server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
				Resources: []cachetest.Resource{{GroupVersionResource: pods, Source: backend}},
			}))
			t.Cleanup(server.Close)
			client, err := kubeapi.New(kubeapi.Options{
				BaseURL: server.URL, Resource: pods, HTTPClient: server.Client(),
			})
			if err != nil {
				t.Fatal(err)
			}
			return conformance.RigOver(backend, "default", client)
		},
	})
}

func ExampleTestStore() {
	var t *testing.T // the calling test's

	conformance.TestStore(t, conformance.StoreConfig{
		New: func(testing.TB) conformance.ReflectorStore {
			return cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		},
	})
}
