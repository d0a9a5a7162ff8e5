// Package unstructuredfields reads unstructured objects by constant paths.
package unstructuredfields

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// type: k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured

func nested(object *unstructured.Unstructured) {
	_, _, _ = unstructured.NestedString(object.Object, "spec", "nodeName")                       // want "read spec.nodeName"
	_, _, _ = unstructured.NestedStringMap(object.Object, "metadata", "annotations")             // want "read metadata.annotations"
	spec, _, _ := unstructured.NestedMap(object.Object, "spec", "template")                      // want "presence spec.template"
	_, _, _ = unstructured.NestedInt64(spec, "replicas")                                         // want "read spec.template.replicas"
	list, _, _ := unstructured.NestedSlice(object.UnstructuredContent(), "status", "conditions") // want "presence status.conditions"
	for _, item := range list {
		condition, _ := item.(map[string]any)
		_ = condition["type"].(string) // want "presence status.conditions.type" "read status.conditions.type"
	}
}

func indexed(object *unstructured.Unstructured) {
	_ = object.Object["spec"].(map[string]any)["x"].(bool)                // want "presence spec" "presence spec.x" "read spec.x"
	_ = object.GetName()                                                  // want "read metadata.name"
	_ = object.GetAnnotations()["a.b/c"]                                  // want "read metadata.annotations[a.b/c]"
	_, _, _ = unstructured.NestedString(object.DeepCopy().Object, "data") // want "read data"
}

func helper(content map[string]any) string {
	text, _, _ := unstructured.NestedString(content, "helped") // want "read helped"
	return text
}

func variable(object *unstructured.Unstructured, field string) {
	_ = helper(object.Object)
	_, _, _ = unstructured.NestedString(object.Object, "status", field) // want "read status"
	_ = unstructured.SetNestedField(object.Object, "x", "status", "y")
	object.SetName("x")
}

func changed(object *unstructured.Unstructured) {
	path := []string{"status", "phase"}
	path[1] = "reason"
	_, _, _ = unstructured.NestedString(object.Object, path...) // want "read "
}

func escapes(object *unstructured.Unstructured) {
	_, _ = json.Marshal(object.Object["data"]) // want "presence data" "escaped data: passed to encoding/json.Marshal"
	_, _ = object.MarshalJSON()                // want "escaped : passed to (*k8s.io/apimachinery/pkg/apis/meta/v1/unstructured.Unstructured).MarshalJSON"
}
