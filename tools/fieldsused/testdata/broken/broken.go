// Package broken does not compile.
package broken

import corev1 "k8s.io/api/core/v1"

func node(pod *corev1.Pod) int { return pod.Spec.NodeName }
