// Package apimethods calls methods of the API's types, which are reads at the call.
package apimethods

import corev1 "k8s.io/api/core/v1"

func methods(pod *corev1.Pod, taint *corev1.Taint) {
	_ = pod.Spec.Containers[0].Resources.Limits.Cpu()                     // want "read spec.containers.resources.limits"
	_ = pod.Spec.Tolerations[0].MatchToleration(&pod.Spec.Tolerations[1]) // want "read spec.tolerations.effect" "read spec.tolerations.key" "read spec.tolerations.operator" "read spec.tolerations.value"
}
