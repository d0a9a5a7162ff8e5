package kubeapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/kubeapi"
)

// TestSourceOverHTTPKeepsThePromisesOfAListerWatcher has an HTTP server, client and network in each
// check's bubble.
func TestSourceOverHTTPKeepsThePromisesOfAListerWatcher(t *testing.T) {
	for name, change := range map[string]struct {
		backend cachetest.Options
		source  func(*kubeapi.Options)
	}{
		"unstructured":      {},
		"of a namespace":    {source: func(o *kubeapi.Options) { o.Namespace = "shop" }},
		"expired on stream": {backend: cachetest.Options{ExpiredOnStream: true}},
		"typed":             {source: func(o *kubeapi.Options) { o.ObjectType = &widget{} }},
		"fields": {
			source: func(o *kubeapi.Options) { o.Fields = []string{"metadata.annotations"} },
		},
		"fields, typed": {source: func(o *kubeapi.Options) {
			o.ObjectType = &widget{}
			o.Fields = []string{"metadata.annotations[" + conformance.MarkAnnotation + "]"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
				Virtual: true,
				New: func(t testing.TB) conformance.ListerWatcherRig {
					change.backend.GroupVersionKind = schema.GroupVersionKind{
						Version: "v1",
						Kind:    "Pod",
					}
					return rigOverHTTP(t, change.backend, change.source)
				},
			})
		})
	}
}

func rigOverHTTP(
	t testing.TB, backend cachetest.Options, change func(*kubeapi.Options),
) conformance.ListerWatcherRig {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	truth := cachetest.NewSource(backend)
	t.Cleanup(truth.Close)
	server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: pods, Source: truth}},
	}))
	t.Cleanup(server.Close)
	options := kubeapi.Options{BaseURL: server.URL, Resource: pods, HTTPClient: server.Client()}
	if change != nil {
		change(&options)
	}
	source, err := kubeapi.New(options)
	require.NoError(t, err)
	return conformance.RigOver(truth, "shop", source)
}

// widget is a user's type, decoded by its tags.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}
