package statuspage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

type object = *unstructured.Unstructured

func newObject(kind, namespace, name string) object {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: kind})
	o.SetNamespace(namespace)
	o.SetName(name)
	if kind == "Secret" {
		o.Object["type"] = "Opaque"
		o.Object["data"] = map[string]any{"password": "c2VjcmV0"}
	}
	return o
}

func newSource(t *testing.T, kind string, count int) *cachetest.Source {
	source := cachetest.NewTestSource(t, cachetest.Options{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}})
	for i := range count {
		source.MustApply(t, newObject(kind, []string{"shop", "search"}[i%2], fmt.Sprintf("web-%04d", i)))
	}
	return source
}

// newInformer returns an informer whose failures are only in its status, not in a log.
func newInformer(name string, source cache.Source) *cache.Informer[object] {
	return cache.NewTypedInformer(source, cache.InformerConfig[object]{Name: name, ReflectorOptions: cache.ReflectorOptions{
		ErrorHandler: func(context.Context, *cache.Reflector, error) {},
	}})
}

func add(t *testing.T, registry *statuspage.Registry, name string, reporter any) (remove func()) {
	remove, err := registry.Add(name, reporter)
	require.NoError(t, err)
	return remove
}

// start starts run. stop ends it and waits for its end.
func start(t *testing.T, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	return func() { cancel(); <-ended }
}

func running(informer *cache.Informer[object]) func(context.Context) {
	return func(ctx context.Context) { _ = informer.Run(ctx) }
}

// get returns the response to a request with a query.
func get(registry *statuspage.Registry, query string) *httptest.ResponseRecorder {
	return ask(registry, http.MethodGet, query, "")
}

func ask(registry *statuspage.Registry, method, query, accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/debug/caches"+query, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	answer := httptest.NewRecorder()
	statuspage.Handler(registry).ServeHTTP(answer, r)
	return answer
}

// getJSON decodes the JSON form of a page.
func getJSON(t *testing.T, registry *statuspage.Registry, query string) map[string]any {
	answer := ask(registry, http.MethodGet, query, "application/json")
	require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
	require.Equal(t, "application/json", answer.Header().Get("Content-Type"))
	var value map[string]any
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &value))
	return value
}
