// Package helpers passes parts of objects to functions and returns them.
package helpers

import corev1 "k8s.io/api/core/v1"

func specOf(pod *corev1.Pod) *corev1.PodSpec { return &pod.Spec }

func node(spec *corev1.PodSpec) string { return spec.NodeName } // want "read spec.nodeName"

func images(containers []corev1.Container) (all []string) { // want "presence spec.initContainers"
	for _, container := range containers {
		all = append(all, imageOf(&container))
	}
	return all
}

func imageOf(container *corev1.Container) string {
	return container.Image // want "read spec.initContainers.image"
}

func pair(pod *corev1.Pod) (*corev1.PodStatus, corev1.PodSpec) { return &pod.Status, pod.Spec }

func use(pod *corev1.Pod) {
	_ = node(specOf(pod))
	_ = images(pod.Spec.InitContainers)
	status, spec := pair(pod)
	_ = status.Reason // want "read status.reason"
	_ = spec.Hostname // want "read spec.hostname"
}

// unrelated passes a part of another object to the same kind of helper.
func unrelated(template *corev1.PodTemplateSpec) string { return hostname(&template.Spec) }

func hostname(spec *corev1.PodSpec) string { return spec.Subdomain }

type visitor struct{}

func (v visitor) visit(status corev1.PodStatus) string { return v.ip(&status) }

func (visitor) ip(status *corev1.PodStatus) string { return status.PodIP } // want "read status.podIP"

func visits(pod *corev1.Pod) string { return visitor{}.visit(pod.Status) }

// depth is recursive.
func depth(status *corev1.PodStatus, n int) string {
	if n == 0 {
		return status.Message // want "read status.message"
	}
	return depth(status, n-1)
}

func recursive(pod *corev1.Pod) string { return depth(&pod.Status, 3) }
