package pods

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// listKeys are the lists whose items have owners of their own, with the fields that tell
// the items apart; other lists have one owner.
var listKeys = map[string][]string{
	"conditions":       {"type"},
	"containers":       {"name"},
	"env":              {"name"},
	"hostIPs":          {"ip"},
	"imagePullSecrets": {"name"},
	"initContainers":   {"name"},
	"ownerReferences":  {"uid"},
	"podIPs":           {"ip"},
	"ports":            {"containerPort", "protocol"},
	"volumeMounts":     {"mountPath"},
	"volumes":          {"name"},
}

// ownedByNobody are the fields that appear in no FieldsV1.
var ownedByNobody = map[string]bool{
	"name": true, "namespace": true, "uid": true, "resourceVersion": true, "creationTimestamp": true, "managedFields": true,
}

// managedFields are those of a pod that a controller created and a kubelet reports on.
func managedFields(pod *corev1.Pod, id identity) []metav1.ManagedFieldsEntry {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		panic(fmt.Sprintf("a pod made here has no JSON form: %v", err))
	}
	metadata := content["metadata"].(map[string]any)
	for name := range ownedByNobody {
		delete(metadata, name)
	}
	spec := content["spec"].(map[string]any)
	for _, set := range []string{"nodeName", "serviceAccount", "priority", "preemptionPolicy", "tolerations"} {
		delete(spec, set) // by admission and the scheduler, which own nothing
	}
	status := content["status"].(map[string]any)
	delete(status, "qosClass")
	conditions := status["conditions"].([]any)
	status["conditions"] = conditions[:len(conditions)-1] // the last is the scheduler's
	entry := func(manager, subresource string, at metav1.Time, owned map[string]any) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(asJSON(owned))), Subresource: subresource,
		}
	}
	return []metav1.ManagedFieldsEntry{
		entry("kube-controller-manager", "", metav1.Time{Time: id.created},
			map[string]any{"f:metadata": fieldSet(metadata), "f:spec": fieldSet(spec)}),
		entry("kubelet", "status", metav1.Time{Time: id.ready}, map[string]any{"f:status": fieldSet(status)}),
	}
}

// fieldSet is the FieldsV1 form of an object all of whose fields have one owner.
func fieldSet(object map[string]any) map[string]any {
	set := map[string]any{}
	for name, value := range object {
		switch value := value.(type) {
		case map[string]any:
			set["f:"+name] = fieldSet(value)
		case []any:
			set["f:"+name] = itemSet(name, value)
		default:
			set["f:"+name] = map[string]any{}
		}
	}
	return set
}

func itemSet(list string, items []any) map[string]any {
	keys, ok := listKeys[list]
	if !ok {
		return map[string]any{}
	}
	set := map[string]any{".": map[string]any{}}
	for _, item := range items {
		object := item.(map[string]any)
		key := map[string]any{}
		for _, name := range keys {
			key[name] = object[name]
		}
		fields := fieldSet(object)
		fields["."] = map[string]any{}
		set["k:"+string(asJSON(key))] = fields
	}
	return set
}

func asJSON(value any) []byte {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("made here and not JSON: %v", err))
	}
	return []byte(strings.TrimSuffix(text.String(), "\n"))
}
