package kubeapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// managingServers are kinds of servers: the managers that each sends, by the Accept header of a
// request.
var managingServers = map[string]struct {
	with, without string // the managers in a response to a request with and without the parameter
	refuses       bool
	status        string
}{
	"knows the parameter": {with: "", without: "kubectl", status: "dropped by the server"},
	"ignores the parameter": {
		with:    "kubectl",
		without: "kubectl",
		status:  "dropped by the client, the server sends them",
	},
	"refuses the parameter": {
		without: "kubectl",
		refuses: true,
		status:  "dropped by the client, the server refuses the parameter",
	},
}

// Over HTTP, with an informer: the objects are the same whatever the server does, and the status
// reports where the fields were dropped.
func TestAnInformersObjectsHaveNoManagedFieldsWhateverTheServerDoes(t *testing.T) {
	for name, test := range managingServers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
				handlers := map[bool]http.Handler{}
				sources := map[bool]*cachetest.Source{}
				for drop, manager := range map[bool]string{true: test.with, false: test.without} {
					source := cachetest.NewSource(cachetest.Options{
						GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
					})
					t.Cleanup(source.Close)
					sources[drop] = source
					require.NoError(t, source.Apply(managedPod("a", manager)))
					handlers[drop] = cachetest.NewHandler(cachetest.HandlerOptions{
						Resources: []cachetest.Resource{
							{GroupVersionResource: pods, Source: source},
						},
					})
				}
				server := cachetest.NewServer(
					http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						drop := strings.Contains(
							r.Header.Get("Accept"), ";drop=metadata.managedFields")
						if drop && test.refuses {
							http.Error(w, "not acceptable", http.StatusNotAcceptable)
							return
						}
						handlers[drop].ServeHTTP(w, r)
					}),
				)
				t.Cleanup(server.Close)
				for _, keep := range []bool{false, true} {
					source, err := kubeapi.New(kubeapi.Options{
						BaseURL:           server.URL,
						Resource:          pods,
						HTTPClient:        server.Client(),
						KeepManagedFields: keep,
					})
					require.NoError(t, err)
					informer := cache.NewTypedInformer[*unstructured.Unstructured](
						source, cache.InformerConfig[*unstructured.Unstructured]{})
					ctx, stop := context.WithCancel(t.Context())
					ended := make(chan error, 1)
					go func() { ended <- informer.Run(ctx) }()
					t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
					require.NoError(t, informer.WaitSynced(t.Context()))
					pod, err := informer.Get("shop/a")
					require.NoError(t, err)
					status := informer.Status()
					encoded, err := json.Marshal(status)
					require.NoError(t, err)
					if keep {
						require.Len(t, pod.GetManagedFields(), 1)
						require.Equal(t, "kept", status.Source["managedFields"])
						continue
					}
					require.Empty(t, pod.GetManagedFields())
					require.Equal(t, test.status, status.Source["managedFields"])
					require.Contains(t, string(encoded), `"managedFields":"`+test.status+`"}`)
					require.Zero(t, status.ConsecutiveFailures)
					require.Empty(t, status.Failures)
					// An event.
					for drop, manager := range map[bool]string{
						true: test.with, false: test.without,
					} {
						require.NoError(t, sources[drop].Apply(managedPod("b", manager)))
					}
					require.NoError(
						t,
						informer.WaitForResourceVersion(
							t.Context(), sources[false].ResourceVersion()),
					)
					pod, err = informer.Get("shop/b")
					require.NoError(t, err)
					require.Empty(t, pod.GetManagedFields())
					synctest.Wait()
					require.WithinDuration(t, time.Now(), informer.Status().LastRead, time.Minute)
					require.Zero(t, testing.AllocsPerRun(100, func() { informer.Status() }))
				}
			})
		})
	}
}

func managedPod(name, manager string) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{
		Object: map[string]any{"metadata": map[string]any{"namespace": "shop", "name": name}},
	}
	if manager != "" {
		pod.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager}})
	}
	return pod
}
