package guarantees

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/kubeapi"
)

func TestStoresKeepThePromisesOfAStore(t *testing.T) {
	for name, makeStore := range map[string]func() conformance.ReflectorStore{
		"NewStore":   func() conformance.ReflectorStore { return cache.NewStore(cache.MetaNamespaceKeyFunc) },
		"NewIndexer": func() conformance.ReflectorStore { return cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil) },
		"InNamespace": func() conformance.ReflectorStore {
			return cache.InNamespace(cache.NewStore(cache.MetaNamespaceKeyFunc), conformance.StoreNamespace)
		},
		"transforming": func() conformance.ReflectorStore {
			same := func(obj any) (any, error) { return obj, nil }
			return cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(same))
		},
		"NewThreadSafeStore": func() conformance.ReflectorStore {
			return keyedStore{cache.NewThreadSafeStore(cache.Indexers{}, nil)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestStore(t, conformance.StoreConfig{
				New:           func(testing.TB) conformance.ReflectorStore { return makeStore() },
				NoIndexErrors: name == "NewThreadSafeStore", // its writing methods return nothing
			})
		})
	}
}

// A queue's content is what its consumer makes of it: here a store, into which everything pending
// is popped.
func TestDeltaFIFOKeepsThePromisesOfAReflectorStore(t *testing.T) {
	conformance.TestStore(t, conformance.StoreConfig{
		New: func(testing.TB) conformance.ReflectorStore { return newQueueAndStore() },
		Content: func(store conformance.ReflectorStore) ([]any, error) {
			return store.(*queueAndStore).content()
		},
	})
}

type queueAndStore struct {
	*cache.DeltaFIFO
	known cache.Store
}

// newQueueAndStore closes the queue, so that Pop does not wait once nothing is pending.
func newQueueAndStore() *queueAndStore {
	known := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KnownObjects:          known,
		EmitDeltaTypeReplaced: true,
	})
	queue.Close()
	return &queueAndStore{DeltaFIFO: queue, known: known}
}

func (q *queueAndStore) content() ([]any, error) {
	for {
		_, err := q.Pop(q.apply)
		if errors.Is(err, cache.ErrFIFOClosed) {
			return q.known.List(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (q *queueAndStore) apply(obj any, _ bool) error {
	for _, delta := range obj.(cache.Deltas) {
		write := q.known.Update
		if delta.Type == cache.Deleted {
			write = q.known.Delete
		}
		if err := write(delta.Object); err != nil {
			return err
		}
	}
	return nil
}

// keyedStore computes the keys for a ThreadSafeStore, as its users do.
type keyedStore struct{ cache.ThreadSafeStore }

func (k keyedStore) Add(obj any) error { return k.Update(obj) }

func (k keyedStore) Update(obj any) error {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err == nil {
		k.ThreadSafeStore.Update(key, obj)
	}
	return err
}

func (k keyedStore) Delete(obj any) error {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err == nil {
		k.ThreadSafeStore.Delete(key)
	}
	return err
}

func (k keyedStore) Replace(list []any, version string) error {
	items := make(map[string]any, len(list))
	for _, obj := range list {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err != nil {
			return err
		}
		items[key] = obj
	}
	k.ThreadSafeStore.Replace(items, version)
	return nil
}

func (k keyedStore) Get(obj any) (any, bool, error) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, err
	}
	return k.GetByKey(key)
}

func (k keyedStore) GetByKey(key string) (any, bool, error) {
	obj, exists := k.ThreadSafeStore.Get(key)
	return obj, exists, nil
}

func TestAMirrorOverHTTPConvergesToTheSource(t *testing.T) {
	for name, strategy := range map[string]cache.ListStrategy{
		"automatic": cache.ListAutomatic, "whole": cache.ListUnpaged, "paged": cache.ListPaged, "streaming": cache.ListStreaming,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHTTPRig(t, func(c *cache.Config, _ *kubeapi.Options) { c.ReflectorOptions.Strategy = strategy })
				h.run()
				sleep(time.Second)
				require.True(t, h.ctlr.HasSynced())
				h.assertEqualsSource()
				for i := range 100 {
					require.NoError(t, h.source.Apply(unstructuredPod("ns-1", itoa(i*7+1), "second")))
				}
				_, err := h.source.Delete("ns-0", "0")
				require.NoError(t, err)
				sleep(time.Second)
				h.assertEqualsSource()
				assert.Empty(t, h.errors.all())
				streamed := strategy == cache.ListAutomatic || strategy == cache.ListStreaming
				assert.Equal(t, streamed, h.source.ListCalls() == 0)
				inNamespace, err := h.indexer.ByIndex(cache.NamespaceIndex, "ns-3")
				require.NoError(t, err)
				assert.Len(t, inNamespace, 171)
				h.stop()
			})
		})
	}
}

// Several namespaces over one connection pool, each with its own source. A namespace that is not served
// delays no other.
func TestSeveralNamespacesOverHTTPConvergeToTheirPartsOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHTTPRig(t, func(c *cache.Config, o *kubeapi.Options) {
			c.Namespaces = map[string]cache.Source{}
			for _, namespace := range []string{"ns-1", "ns-2", "removed"} {
				each := *o
				each.Namespace = namespace
				if namespace == "removed" {
					each.Resource.Resource = "nowhere"
				}
				source, err := kubeapi.New(each)
				require.NoError(t, err)
				c.Namespaces[namespace] = source
			}
		})
		h.run()
		sleep(time.Minute)
		for namespace, synced := range map[string]bool{"ns-1": true, "ns-2": true, "removed": false} {
			checker, ok := h.ctlr.SyncedIn(namespace)
			require.True(t, ok)
			assert.Equal(t, synced, cache.IsDone(checker), namespace)
		}
		assert.Equal(t, 2*172, len(h.indexer.ListKeys()))
		assert.Equal(t, cache.PhaseNotFound, h.ctlr.Status().Phase)
		require.NoError(t, h.source.Apply(unstructuredPod("ns-2", "new", "x"), unstructuredPod("ns-3", "new", "x")))
		sleep(time.Second)
		assert.Equal(t, 2*172+1, len(h.indexer.ListKeys()))
		h.stop()
	})
}

// A refused login is reported as Unauthorized each time, and retried within the limits.
func TestARefusedLoginIsReportedAsUnauthorized(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{Token: "secret"}))
		api, err := kubeapi.New(kubeapi.Options{
			BaseURL: server.URL, Resource: podResource, HTTPClient: server.Client(),
			Authorize: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer wrong"); return nil },
		})
		require.NoError(t, err)
		r := newRig(t, newSource(t), func(c *cache.Config) { c.ListerWatcher = api })
		r.run()
		sleep(10 * time.Minute)
		for _, cause := range r.errors.causes() {
			assert.Equal(t, cache.CauseUnauthorized, cause)
		}
		assert.InDelta(t, 25, len(r.errors.all()), 12)
		assert.False(t, r.ctlr.HasSynced())
		r.stop()
		server.Close()
	})
}
