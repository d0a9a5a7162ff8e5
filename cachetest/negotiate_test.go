package cachetest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache/cachetest"
)

const (
	metadataOf     = ";as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	metadataListOf = ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// specPods returns a handler of one pod with a spec.
func specPods(t *testing.T) (*cachetest.Source, *cachetest.Handler) {
	source := cachetest.NewTestSource(t, cachetest.Options{GroupVersionKind: podKind})
	pod := &unstructured.Unstructured{
		Object: map[string]any{"spec": map[string]any{"nodeName": "n"}},
	}
	pod.SetGroupVersionKind(podKind)
	pod.SetNamespace("shop")
	pod.SetName("web")
	source.MustApply(t, pod)
	return source, cachetest.NewHandler(cachetest.HandlerOptions{Resources: []cachetest.Resource{{
		GroupVersionResource: podKind.GroupVersion().WithResource("pods"), Source: source,
	}}})
}

func TestTheHandlerRespondsWithWhatTheRequestAccepts(t *testing.T) {
	_, handler := specPods(t)
	const list, get, watch = "/api/v1/pods", "/api/v1/namespaces/shop/pods/web", "/api/v1/pods?watch=true&resourceVersion=1&timeoutSeconds=1"
	const protobuf = "application/vnd.kubernetes.protobuf"
	for _, test := range []struct{ path, accept, kind string }{
		{list, "", "PodList"},
		{list, "*/*", "PodList"},
		{list, "application/json", "PodList"},
		{list, "application/json;charset=utf-8", "PodList"},
		{list, protobuf + ",application/json", "PodList"},
		{list, "text/html,application/xhtml+xml,*/*;q=0.8", "PodList"},
		{list, protobuf, ""},
		{list, "text/html", ""},
		{list, "application/yaml", ""},
		{list, "application/json;q=0", ""},
		{list, ";;;", ""},
		{list, "application/json;as=Table;v=v1;g=meta.k8s.io", ""},
		{list, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "PodList"},
		{list, "application/json" + metadataListOf, "PartialObjectMetadataList"},
		{
			list, "application/json;q=0.5,application/json" + metadataListOf,
			"PartialObjectMetadataList",
		},
		{
			list,
			protobuf + metadataListOf + ",application/json" + metadataListOf + ",application/json",
			"PartialObjectMetadataList",
		},
		{list, "application/json" + metadataOf, ""},
		{list, "application/json;as=PartialObjectMetadataList;v=v2;g=meta.k8s.io", ""},
		{get, "application/json", "Pod"},
		{get, "application/json" + metadataOf, "PartialObjectMetadata"},
		{get, "application/json" + metadataListOf, ""},
		{get, protobuf, ""},
		{watch, protobuf, ""},
		{watch, "application/json" + metadataListOf, ""},
	} {
		request := httptest.NewRequest(http.MethodGet, test.path, nil)
		request.Header.Set("Accept", test.accept)
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		var answer struct {
			Kind, Reason string
			Items        []metav1.PartialObjectMetadata
		}
		require.NoError(t, json.Unmarshal(response.Body.Bytes(), &answer), response.Body.String())
		if test.kind == "" {
			assert.Equal(
				t, http.StatusNotAcceptable, response.Code, "%s %s", test.path, test.accept)
			assert.Equal(t, "NotAcceptable", answer.Reason)
			continue
		}
		assert.Equal(t, http.StatusOK, response.Code, "%s %s", test.path, test.accept)
		assert.Equal(t, test.kind, answer.Kind, test.accept)
		assert.Equal(
			t, strings.Contains(test.kind, "Metadata"),
			!strings.Contains(response.Body.String(), "nodeName"))
		for _, item := range answer.Items {
			assert.Equal(t, strings.TrimSuffix(test.kind, "List"), item.Kind)
			assert.Equal(t, "web", item.Name)
		}
	}
}

func TestAWatchOfMetadataHasOnlyMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, handler := specPods(t)
		server := cachetest.NewServer(handler)
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			server.URL+"/api/v1/pods?watch=true&allowWatchBookmarks=true", nil)
		require.NoError(t, err)
		request.Header.Set("Accept", "application/json"+metadataOf)
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		lines := bufio.NewScanner(response.Body)
		for _, want := range []string{"ADDED", "BOOKMARK", "ERROR"} {
			require.True(t, lines.Scan())
			var event struct {
				Type   string
				Object map[string]any
			}
			require.NoError(t, json.Unmarshal(lines.Bytes(), &event))
			assert.Equal(t, want, event.Type)
			kind := "PartialObjectMetadata"
			if want == "ERROR" {
				kind = "Status"
			}
			assert.Equal(t, kind, event.Object["kind"])
			assert.NotContains(t, event.Object, "spec")
			switch want {
			case "ADDED":
				source.SendBookmarks()
			case "BOOKMARK":
				source.BreakWatches(cachetest.ErrExpired())
			}
		}
		cancel()
		require.NoError(t, response.Body.Close())
		server.Close()
	})
}
