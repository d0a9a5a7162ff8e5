// Package keys selects keys of maps.
package keys

import corev1 "k8s.io/api/core/v1"

// fields: metadata.annotations.owner metadata.annotations[example.com/team] spec.containers.resources.limits.cpu spec.nodeSelector

const team = "example.com/team"

func constant(pod *corev1.Pod) {
	_ = pod.Annotations["owner"]   // want "read metadata.annotations.owner"
	_, ok := pod.Annotations[team] // want "read metadata.annotations[example.com/team]"
	_ = ok
	_ = pod.Labels["app"]                                           // want "read metadata.labels.app"
	_ = pod.Spec.Containers[0].Resources.Limits[corev1.ResourceCPU] // want "read spec.containers.resources.limits.cpu"
}

func variable(pod *corev1.Pod, key string) string {
	return pod.Spec.NodeSelector[key] // want "read spec.nodeSelector"
}
