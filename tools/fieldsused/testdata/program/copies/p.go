// Package copies copies objects, which reads nothing.
package copies

import corev1 "k8s.io/api/core/v1"

func deep(pod *corev1.Pod) {
	_ = pod.DeepCopy().Spec.NodeName                     // want "read spec.nodeName"
	_ = pod.DeepCopyObject().(*corev1.Pod).Spec.Hostname // want "read spec.hostname"
	_ = pod.Spec.DeepCopy().Subdomain                    // want "read spec.subdomain"
	var status corev1.PodStatus
	pod.Status.DeepCopyInto(&status)
	_ = status.Phase // want "read status.phase"
	other := *pod
	_ = other.Status.PodIP // want "read status.podIP"
	containers := make([]corev1.Container, 3)
	copy(containers, pod.Spec.Containers)
	_ = containers[0].Image // want "read spec.containers.image"
}
