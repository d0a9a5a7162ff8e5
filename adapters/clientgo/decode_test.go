package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/kubeapi"
)

func TestObjectsAreDecodedIntoWhatTheOptionsAskFor(t *testing.T) {
	metadataOf := func(version string) runtime.Object { return podAs(pod("web-0", version), true) }
	unstructuredOf := func(version string) runtime.Object {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(
			podAs(pod("web-0", version), false))
		require.NoError(t, err)
		return &unstructured.Unstructured{Object: content}
	}
	typed := func(version string) runtime.Object { return pod("web-0", version) }
	for name, test := range map[string]struct {
		objectType runtime.Object
		encoding   kubeapi.Encoding
		want       func(version string) runtime.Object
	}{
		"pods in JSON":         {typed(""), kubeapi.JSON, typed},
		"pods in protobuf":     {typed(""), kubeapi.Protobuf, typed},
		"unstructured":         {nil, kubeapi.JSON, unstructuredOf},
		"metadata in JSON":     {&metav1.PartialObjectMetadata{}, kubeapi.JSON, metadataOf},
		"metadata in protobuf": {&metav1.PartialObjectMetadata{}, kubeapi.Protobuf, metadataOf},
	} {
		t.Run(name, func(t *testing.T) {
			config := rest.Config{
				Host:          serve(t, podServer{t, test.encoding}).URL,
				ContentConfig: rest.ContentConfig{ContentType: string(test.encoding)},
			}
			for way, source := range map[string]*kubeapi.ListerWatcher{
				"config": sourceOf(t, &config, func(o *kubeapi.Options) { o.ObjectType = test.objectType }),
				"client": sourceOfClient(t, clientOf(t, config), func(o *kubeapi.Options) {
					o.ObjectType = test.objectType
					o.Encodings = []kubeapi.Encoding{test.encoding}
				}),
			} {
				list, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
				require.NoError(t, err, way)
				items, err := meta.ExtractList(list)
				require.NoError(t, err)
				require.Len(t, items, 1)
				same(t, test.want("5"), items[0])

				stream, err := source.WatchWithContext(
					t.Context(), metav1.ListOptions{ResourceVersion: "5"})
				require.NoError(t, err)
				event := <-stream.ResultChan()
				stream.Stop()
				assert.Equal(t, watch.Modified, event.Type)
				same(t, test.want("6"), event.Object)
			}
		})
	}
}

// same compares the meaning of objects: a quantity remembers how it was written.
func same(t *testing.T, want, have runtime.Object) {
	t.Helper()
	if !equality.Semantic.DeepEqual(want, have) {
		assert.Equal(t, want, have)
	}
}
