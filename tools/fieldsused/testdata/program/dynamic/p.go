// Package dynamic calls function values and methods of interfaces.
package dynamic

import corev1 "k8s.io/api/core/v1"

type rule interface {
	check(spec *corev1.PodSpec) bool
}

type host struct{}

func (host) check(spec *corev1.PodSpec) bool { return spec.HostNetwork } // want "read spec.hostNetwork"

type ipc struct{}

func (*ipc) check(spec *corev1.PodSpec) bool { return spec.HostIPC } // want "read spec.hostIPC"

func rules() []rule { return []rule{host{}, &ipc{}} }

func all(pod *corev1.Pod) {
	for _, r := range rules() {
		_ = r.check(&pod.Spec)
	}
}

var checks = []func(status *corev1.PodStatus) string{reason, func(status *corev1.PodStatus) string {
	return status.Message // want "read status.message"
}}

func reason(status *corev1.PodStatus) string { return status.Reason } // want "read status.reason"

func run(pod *corev1.Pod) {
	for _, check := range checks {
		_ = check(&pod.Status)
	}
	method := host{}.other
	_ = method(&pod.Spec)
}

func (host) other(spec *corev1.PodSpec) string { return spec.Subdomain } // want "read spec.subdomain"
