// Package stored keeps parts of objects where they are not followed.
package stored

import corev1 "k8s.io/api/core/v1"

type summary struct {
	name       string
	containers []corev1.Container
}

var last *corev1.PodStatus

func store(pod *corev1.Pod, by map[string]corev1.PodSpec, queue chan corev1.PodSpec) summary {
	last = &pod.Status // want "escaped status: stored in another object"
	by["x"] = pod.Spec // want "escaped spec: stored in a map"
	queue <- pod.Spec  // want "escaped spec: sent on a channel"
	return summary{
		name:       pod.Name,            // want "read metadata.name"
		containers: pod.Spec.Containers, // want "escaped spec.containers: stored in another object"
	}
}
