// Package conversions converts objects and parts to types of its own.
package conversions

import corev1 "k8s.io/api/core/v1"

type ownPod corev1.Pod

type ownSpec corev1.PodSpec

func (p *ownPod) ip() string { return p.Status.PodIP } // want "read status.podIP"

func pointers(pod *corev1.Pod) string {
	_ = (*ownPod)(pod).Spec.Subdomain // want "read spec.subdomain"
	return (*ownPod)(pod).ip()
}

func copies(pod *corev1.Pod) string {
	own := ownPod(*pod)
	return own.Spec.NodeName // want "read spec.nodeName"
}

func parts(pod *corev1.Pod) string {
	spec := ownSpec(pod.Spec)
	return scheduler(&spec)
}

func scheduler(spec *ownSpec) string { return spec.SchedulerName } // want "read spec.schedulerName"

type holder struct{ own *ownPod }

func stores(h *holder, pod *corev1.Pod) {
	h.own = (*ownPod)(pod) // want "escaped : stored in another object"
}
