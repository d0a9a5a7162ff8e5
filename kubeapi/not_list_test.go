package kubeapi

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// message is the content of an object in protobuf.
type message []byte

func (m message) Marshal() ([]byte, error) { return m, nil }

// Fails if the documents of discovery, which proxies and other paths of a server answer with, count
// as empty lists: a mirror would delete everything.
func TestDocumentsThatAreNoListsAreNeverLists(t *testing.T) {
	item := map[string]any{"metadata": map[string]any{"name": "apps"}}
	for name, document := range map[string]map[string]any{
		"resources of a group": {
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1",
			"resources": []any{},
		},
		"without apiVersion": {
			"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{},
		},
		"groups": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"a group": {
			"kind": "APIGroup", "apiVersion": "v1", "name": "apps", "items": []any{},
		},
		"versions": {
			"kind": "APIVersions", "versions": []any{"v1"}, "items": []any{},
		},
		"aggregated discovery": {
			"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
			"metadata": map[string]any{}, "items": []any{item},
		},
		"an empty one": {
			"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2",
			"items": []any{},
		},
		"a Status with items": {"kind": "Status", "apiVersion": "v1", "items": []any{}},
		"a Table with items": {
			"kind": "Table", "apiVersion": "meta.k8s.io/v1", "items": []any{},
		},
		"no items, no version": {
			"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{},
		},
		"a List with neither":    {"kind": "List", "apiVersion": "v1"},
		"an object without kind": {},
	} {
		for _, contentType := range []string{string(JSON), string(CBOR)} {
			t.Run(contentType+" "+name, func(t *testing.T) {
				requireNoList(t, bodyOf(t, contentType, document))
			})
		}
	}
	items, err := (&metav1.PartialObjectMetadataList{Items: make([]metav1.PartialObjectMetadata, 1)}).Marshal()
	require.NoError(t, err)
	resources, err := (&metav1.APIResourceList{GroupVersion: "v1", APIResources: make([]metav1.APIResource, 1)}).Marshal()
	require.NoError(t, err)
	for name, sent := range map[string]struct {
		apiVersion, kind string
		content          message
	}{
		"resources of a group": {"v1", "APIResourceList", resources},
		"groups":               {"v1", "APIGroupList", nil},
		"aggregated discovery": {"apidiscovery.k8s.io/v2", "APIGroupDiscoveryList", items},
		"no items, no version": {"v1", "PodList", message{}},
	} {
		t.Run("protobuf "+name, func(t *testing.T) {
			requireNoList(
				t, body{string(Protobuf), protobufOf(t, sent.content, sent.apiVersion, sent.kind)})
		})
	}
}

func requireNoList(t *testing.T, response body) {
	t.Helper()
	source := metadataSource(t, response)
	header, err := source.ListItems(
		t.Context(),
		metav1.ListOptions{},
		func(metav1.ListMeta, runtime.Object) error {
			t.Error("an item of a document that is no list")
			return nil
		},
	)
	require.ErrorIs(t, err, ErrNotList)
	require.Empty(t, header.ResourceVersion)
}

// The kinds of discovery are free for custom resources, and APIs without versions have empty lists.
func TestListsThatLookLikeOtherDocumentsAreLists(t *testing.T) {
	for name, document := range map[string]map[string]any{
		"of a custom kind": {
			"kind": "APIResourceList", "apiVersion": "x.example/v1", "items": []any{},
		},
		"of a kind named Status": {
			"kind": "StatusList", "apiVersion": "x.example/v1", "items": []any{},
		},
		"without version": {
			"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1",
			"metadata": map[string]any{}, "items": []any{},
		},
		"without items": {
			"kind": "PodList", "apiVersion": "v1",
			"metadata": map[string]any{"resourceVersion": "7"},
		},
		"null for no items": {
			"kind": "PodList", "apiVersion": "v1", "metadata": map[string]any{}, "items": nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := metadataSource(
				t, bodyOf(t, string(JSON), document)).List(
				metav1.ListOptions{})
			require.NoError(t, err)
		})
	}
	empty := protobufOf(
		t, &metav1.PartialObjectMetadataList{}, "metrics.k8s.io/v1beta1", "PodMetricsList")
	_, err := metadataSource(t, body{string(Protobuf), empty}).List(metav1.ListOptions{})
	require.NoError(t, err)
}
