package cachetest_test

import (
	"testing"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// A source with its own backend needs a rig that changes the backend. Here the catalogue is both; yours has a database
// or a server as backend.
func ExampleTestListerWatcher() {
	var t *testing.T // the calling test's

	cachetest.TestListerWatcher(t, cachetest.ListerWatcherConfig{
		Virtual: true,
		New: func(t testing.TB) cachetest.ListerWatcherRig {
			catalogue := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
			t.Cleanup(catalogue.Close)
			marked := func(name, mark string) *widget {
				w := newWidget("default", name, 1)
				w.Annotations = map[string]string{cachetest.MarkAnnotation: mark}
				return w
			}
			return cachetest.ListerWatcherRig{
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

	cachetest.TestListerWatcher(t, cachetest.ListerWatcherConfig{
		Virtual: true,
		New: func(t testing.TB) cachetest.ListerWatcherRig {
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
			return cachetest.RigOver(backend, "default", client)
		},
	})
}

func ExampleTestStore() {
	var t *testing.T // the calling test's

	cachetest.TestStore(t, cachetest.StoreConfig{
		New: func(testing.TB) cachetest.ReflectorStore {
			return cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		},
	})
}
