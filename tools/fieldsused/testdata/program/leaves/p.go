// Package leaves reads types that decode themselves, which are kept or dropped as a whole.
package leaves

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

func times(pod *corev1.Pod, service *corev1.Service) {
	_ = pod.CreationTimestamp.Time                              // want "read metadata.creationTimestamp"
	_ = pod.Status.StartTime.Add(time.Second)                   // want "read status.startTime"
	_ = time.Since(pod.Status.Conditions[0].LastProbeTime.Time) // want "read status.conditions.lastProbeTime"
	_ = pod.Status.StartTime.IsZero()                           // want "read status.startTime"
}

func quantities(pod *corev1.Pod) {
	limits := pod.Spec.Containers[0].Resources.Limits
	limit := limits["memory"] // want "read spec.containers.resources.limits.memory"
	_ = limit.Value()
	probe := pod.Spec.Containers[0].LivenessProbe
	_ = probe.HTTPGet.Port.IntVal // want "read spec.containers.livenessProbe.httpGet.port"
}
