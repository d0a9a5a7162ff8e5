// Package presence asks only whether there is a value.
package presence

import corev1 "k8s.io/api/core/v1"

// fields: metadata.annotations spec.affinity spec.containers.name spec.securityContext.runAsUser status.conditions.type

func asks(pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil { // want "read metadata.deletionTimestamp"
		return false
	}
	if pod.Annotations == nil { // want "presence metadata.annotations"
		return false
	}
	if pod.Spec.Affinity != nil { // want "presence spec.affinity"
		return false
	}
	if pod.Spec.SecurityContext != nil { // want "presence spec.securityContext"
		return pod.Spec.SecurityContext.RunAsUser != nil // want "read spec.securityContext.runAsUser"
	}
	return len(pod.Spec.Containers) > cap(pod.Status.Conditions) // want "presence spec.containers" "presence status.conditions"
}
