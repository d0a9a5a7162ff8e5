package pods

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Strip is a transform: it keeps of a pod what a controller that counts pods or routes to them
// looks at (names, labels, owners, node, addresses, readiness), about 2 KiB of 17. It takes
// *corev1.Pod and *unstructured.Unstructured, and changes them.
func Strip(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		stripTyped(object)
	case *unstructured.Unstructured:
		stripUnstructured(object.Object)
	default:
		return nil, fmt.Errorf("%T is no pod", object)
	}
	return object, nil
}

func stripTyped(pod *corev1.Pod) {
	pod.ManagedFields, pod.Annotations = nil, nil
	pod.Spec = corev1.PodSpec{NodeName: pod.Spec.NodeName}
	var conditions []corev1.PodCondition
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			conditions = []corev1.PodCondition{condition}
		}
	}
	pod.Status = corev1.PodStatus{Phase: pod.Status.Phase, PodIP: pod.Status.PodIP, HostIP: pod.Status.HostIP,
		StartTime: pod.Status.StartTime, Conditions: conditions}
}

func stripUnstructured(pod map[string]any) {
	if metadata, ok := pod["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		delete(metadata, "annotations")
	}
	spec, _ := pod["spec"].(map[string]any)
	pod["spec"] = selected(spec, "nodeName")
	status, _ := pod["status"].(map[string]any)
	kept := selected(status, "phase", "podIP", "hostIP", "startTime")
	if conditions, ok := status["conditions"].([]any); ok {
		for _, condition := range conditions {
			if condition, ok := condition.(map[string]any); ok && condition["type"] == string(corev1.PodReady) {
				kept["conditions"] = []any{condition}
			}
		}
	}
	pod["status"] = kept
}

func selected(from map[string]any, names ...string) map[string]any {
	some := make(map[string]any, len(names)+1)
	for _, name := range names {
		if value, ok := from[name]; ok {
			some[name] = value
		}
	}
	return some
}

// ByNamespace is an index function for pods of either form.
func ByNamespace(object any) ([]string, error) {
	pod, ok := object.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no namespace", object)
	}
	return []string{pod.GetNamespace()}, nil
}
