// Package closures captures objects and parts.
package closures

import (
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
)

func captures(pod *corev1.Pod) func() string {
	spec := &pod.Spec
	return func() string {
		return spec.NodeName + pod.Status.PodIP // want "read spec.nodeName" "read status.podIP"
	}
}

func changed(pod *corev1.Pod) func() string {
	status := pod.Status
	set := func() { status = corev1.PodStatus{} }
	set()
	return func() string { return status.Reason } // want "read status.reason"
}

func sorts(pods []*corev1.Pod, pod *corev1.Pod) {
	sort.Slice(pods, func(i, j int) bool {
		return pods[i].Spec.Hostname < pods[j].Spec.Hostname // want "read spec.hostname"
	})
	_ = slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool {
		return c.Image == "" // want "read spec.containers.image"
	})
	_ = slices.IndexFunc(pods, byPhase)
}

func byPhase(pod *corev1.Pod) bool { return pod.Status.Phase == "" } // want "read status.phase"

func inner(pod *corev1.Pod) {
	spec := pod.Spec
	func() {
		func() {
			_ = spec.Subdomain // want "read spec.subdomain"
		}()
	}()
}
