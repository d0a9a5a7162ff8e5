// Package writes sets fields, which reads nothing.
package writes

import corev1 "k8s.io/api/core/v1"

func sets(pod, from *corev1.Pod) {
	pod.Spec.NodeName = "x"
	pod.Annotations = map[string]string{}
	pod.Labels["x"] = "y"
	delete(pod.Annotations, "x")
	pod.Spec.Containers[0].Image = "i"
	pod.Status.Phase = from.Status.Phase // want "read status.phase"
	pod.Spec = from.Spec
	pod.Spec.Overhead = nil
}

// moved stores a part elsewhere in an object, where it is not followed.
func moved(pod, from *corev1.Pod) {
	pod.Spec.Containers = from.Spec.InitContainers // want "escaped spec.initContainers: stored in another object"
}
