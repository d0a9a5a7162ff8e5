// Package ranges iterates over lists and maps.
package ranges

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func lists(pod *corev1.Pod) {
	for _, container := range pod.Spec.Containers { // want "presence spec.containers"
		_ = container.Image // want "read spec.containers.image"
	}
	for i := range pod.Spec.InitContainers { // want "presence spec.initContainers"
		container := &pod.Spec.InitContainers[i]
		for _, env := range container.Env { // want "presence spec.initContainers.env"
			_ = env.Value // want "read spec.initContainers.env.value"
		}
	}
	for _, argument := range pod.Spec.Containers[0].Args { // want "read spec.containers.args"
		_ = argument
	}
}

func allContainers(pod *corev1.Pod) {
	all := append([]corev1.Container{}, pod.Spec.InitContainers...)
	all = append(all, pod.Spec.Containers...) // want "presence spec.containers" "presence spec.initContainers"
	for _, container := range all {
		_ = container.WorkingDir // want "read spec.containers.workingDir" "read spec.initContainers.workingDir"
	}
}

func entries(pod *corev1.Pod) {
	for key := range pod.Annotations { // want "read metadata.annotations"
		_ = key
	}
	for _, limit := range pod.Spec.Containers[0].Resources.Limits { // want "read spec.containers.resources.limits"
		_ = limit
	}
}

func iterators(pod *corev1.Pod) {
	for _, container := range slices.All(pod.Spec.EphemeralContainers) { // want "read spec.ephemeralContainers"
		_ = container
	}
	_ = slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) // want "read spec.nodeSelector"
}
