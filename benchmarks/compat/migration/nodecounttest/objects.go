package nodecounttest

import (
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func pod(namespace, name, node string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Pod",
		"metadata":   map[string]any{"namespace": namespace, "name": name},
		"spec":       map[string]any{"nodeName": node},
	}}
}

// count is a node's config map.
func count(node, pods string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"namespace": Namespace, "name": Name(node),
			"labels": map[string]any{Label: node},
		},
		"data": map[string]any{Key: pods},
	}}
}

// convert makes an object what a client would see of it.
func (r *rig) convert(obj runtime.Object, into *unstructured.Unstructured) {
	r.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	require.NoError(r.t, err)
	into.SetUnstructuredContent(content)
}
