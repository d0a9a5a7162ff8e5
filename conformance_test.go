package cache

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// The conformance suite for stores, run on those of this package.

func TestStoresKeepThePromisesOfAStore(t *testing.T) {
	for name, makeStore := range map[string]func() cachetest.ReflectorStore{
		"NewStore":   func() cachetest.ReflectorStore { return NewStore(MetaNamespaceKeyFunc) },
		"NewIndexer": func() cachetest.ReflectorStore { return NewIndexer(MetaNamespaceKeyFunc, nil) },
		"InNamespace": func() cachetest.ReflectorStore {
			return InNamespace(NewStore(MetaNamespaceKeyFunc), cachetest.StoreNamespace)
		},
		"transforming": func() cachetest.ReflectorStore {
			same := func(obj any) (any, error) { return obj, nil }
			return NewStore(MetaNamespaceKeyFunc, WithTransformer(same))
		},
		"NewThreadSafeStore": func() cachetest.ReflectorStore {
			return keyedByCaller{NewThreadSafeStore(Indexers{}, nil)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			cachetest.TestStore(t, cachetest.StoreConfig{
				New:           func(testing.TB) cachetest.ReflectorStore { return makeStore() },
				NoIndexErrors: name == "NewThreadSafeStore", // its writing methods return nothing
			})
		})
	}
}

// keyedByCaller makes the keys for a ThreadSafeStore, as its users do.
type keyedByCaller struct{ ThreadSafeStore }

func (k keyedByCaller) Add(obj any) error { return k.Update(obj) }

func (k keyedByCaller) Update(obj any) error {
	key, err := MetaNamespaceKeyFunc(obj)
	if err == nil {
		k.ThreadSafeStore.Update(key, obj)
	}
	return err
}

func (k keyedByCaller) Delete(obj any) error {
	key, err := MetaNamespaceKeyFunc(obj)
	if err == nil {
		k.ThreadSafeStore.Delete(key)
	}
	return err
}

func (k keyedByCaller) Replace(list []any, version string) error {
	items := make(map[string]any, len(list))
	for _, obj := range list {
		key, err := MetaNamespaceKeyFunc(obj)
		if err != nil {
			return err
		}
		items[key] = obj
	}
	k.ThreadSafeStore.Replace(items, version)
	return nil
}

func (k keyedByCaller) Get(obj any) (any, bool, error) {
	key, err := MetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil, false, err
	}
	return k.GetByKey(key)
}

func (k keyedByCaller) GetByKey(key string) (any, bool, error) {
	obj, exists := k.ThreadSafeStore.Get(key)
	return obj, exists, nil
}

// A queue's content is what its consumer makes of it: here a store, into which all that
// is pending is popped.
func TestDeltaFIFOKeepsThePromisesOfAReflectorStore(t *testing.T) {
	cachetest.TestStore(t, cachetest.StoreConfig{
		New: func(testing.TB) cachetest.ReflectorStore {
			known := NewStore(MetaNamespaceKeyFunc)
			return &queueAndStore{known: known, DeltaFIFO: NewDeltaFIFOWithOptions(DeltaFIFOOptions{
				KnownObjects: known, EmitDeltaTypeReplaced: true,
			})}
		},
		Content: func(store cachetest.ReflectorStore) ([]any, error) { return store.(*queueAndStore).content() },
	})
}

type queueAndStore struct {
	*DeltaFIFO
	known Store
}

func (q *queueAndStore) content() ([]any, error) {
	for len(q.log.pendingKeys()) > 0 {
		if _, err := q.Pop(q.apply); err != nil {
			return nil, err
		}
	}
	return q.known.List(), nil
}

func (q *queueAndStore) apply(obj any, _ bool) error {
	for _, delta := range obj.(Deltas) {
		write := q.known.Update
		if delta.Type == Deleted {
			write = q.known.Delete
			if gone, ok := delta.Object.(DeletedFinalStateUnknown); ok {
				delta.Object = gone.Obj
			}
		}
		if err := write(delta.Object); err != nil {
			return err
		}
	}
	return nil
}

// Package kubeapi does not import this one: that the two fit is seen here.
var (
	_ ItemLister = (*kubeapi.ListerWatcher)(nil)
	_ Undecoded  = (*kubeapi.UndecodedObject)(nil)
)

// The whole line over HTTP, in virtual time: a source behind the list/watch
// protocol, a network that can be cut and frozen, kubeapi, and the pipeline.

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func unstructuredPod(namespace, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"v": value}},
		"spec":     map[string]any{"replicas": int64(3)},
	}}
}

// httpRig is a pipeline over HTTP.
type httpRig struct {
	*rig
	server *cachetest.Server
}

func newHTTPRig(t *testing.T, change func(*Config, *kubeapi.Options)) *httpRig {
	source := cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind})
	for i := range 1200 {
		require.NoError(t, source.Apply(unstructuredPod("ns-"+itoa(i%7), itoa(i), "first")))
	}
	server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: source}},
	}))
	options := kubeapi.Options{BaseURL: server.URL, Resource: podResource, HTTPClient: server.Client()}
	h := &httpRig{server: server}
	h.rig = newRig(t, source, func(c *Config) {
		c.ObjectType = unstructuredPod("", "", "")
		if change != nil {
			change(c, &options)
		}
		c.ListerWatcher = nil
		if len(c.Namespaces) > 0 {
			return
		}
		api, err := kubeapi.New(options)
		require.NoError(t, err)
		c.ListerWatcher = api
	})
	return h
}

func (h *httpRig) stop() {
	h.rig.stop()
	h.server.Close()
}

func TestTheWholeLineOverHTTPConvergesToTheSource(t *testing.T) {
	for name, strategy := range map[string]ListStrategy{
		"automatic": ListAutomatic, "whole": ListWhole, "paged": ListPaged, "streaming": ListStreaming,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHTTPRig(t, func(c *Config, _ *kubeapi.Options) { c.ReflectorOptions.Strategy = strategy })
				h.run()
				sleep(time.Second)
				require.True(t, h.ctlr.HasSynced())
				h.equalsSource()
				for i := range 100 {
					require.NoError(t, h.source.Apply(unstructuredPod("ns-1", itoa(i*7+1), "second")))
				}
				_, err := h.source.Delete("ns-0", "0")
				require.NoError(t, err)
				sleep(time.Second)
				h.equalsSource()
				assert.Empty(t, h.heard.all())
				streamed := strategy == ListAutomatic || strategy == ListStreaming
				assert.Equal(t, streamed, h.source.ListCalls() == 0)
				inNamespace, err := h.indexer.ByIndex(NamespaceIndex, "ns-3")
				require.NoError(t, err)
				assert.Len(t, inNamespace, 171)
				h.stop()
			})
		})
	}
}

// Several namespaces over one connection pool, each with a source of its own. The one
// that is not served holds back no other.
func TestSeveralNamespacesOverHTTPConvergeToTheirPartsOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHTTPRig(t, func(c *Config, o *kubeapi.Options) {
			c.Namespaces = map[string]ListerWatcher{}
			for _, namespace := range []string{"ns-1", "ns-2", "gone"} {
				each := *o
				each.Namespace = namespace
				if namespace == "gone" {
					each.Resource.Resource = "nowhere"
				}
				source, err := kubeapi.New(each)
				require.NoError(t, err)
				c.Namespaces[namespace] = source
			}
		})
		h.run()
		sleep(time.Minute)
		for namespace, synced := range map[string]bool{"ns-1": true, "ns-2": true, "gone": false} {
			checker, ok := SyncedIn(h.ctlr, namespace)
			require.True(t, ok)
			assert.Equal(t, synced, IsDone(checker), namespace)
		}
		assert.Equal(t, 2*172, len(h.indexer.ListKeys()))
		status, _ := StatusOf(h.ctlr)
		assert.Equal(t, PhaseAbsent, status.Phase)
		require.NoError(t, h.source.Apply(unstructuredPod("ns-2", "new", "x"), unstructuredPod("ns-3", "new", "x")))
		sleep(time.Second)
		assert.Equal(t, 2*172+1, len(h.indexer.ListKeys()))
		h.stop()
	})
}

// A refused login is a clear error, again and again, and no storm.
func TestARefusedLoginIsReportedAsSuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{Token: "secret"}))
		api, err := kubeapi.New(kubeapi.Options{
			BaseURL: server.URL, Resource: podResource, HTTPClient: server.Client(),
			Authorize: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer wrong"); return nil },
		})
		require.NoError(t, err)
		r := newRig(t, newSource(t), func(c *Config) { c.ListerWatcher = api })
		r.run()
		sleep(10 * time.Minute)
		for _, cause := range r.heard.causes() {
			assert.Equal(t, CauseUnauthorized, cause)
		}
		assert.InDelta(t, 25, len(r.heard.all()), 12)
		assert.False(t, r.ctlr.HasSynced())
		r.stop()
		server.Close()
	})
}
