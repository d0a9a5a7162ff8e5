// Package sibling imports no source. Its own reads are reported where both are imported, what it
// reads of parameters at the calls.
package sibling

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase reads a part.
func Phase(status *corev1.PodStatus) corev1.PodPhase { return status.Phase }

// Owner is generic.
func Owner[T metav1.Object](object T) string { return object.GetAnnotations()["example.com/owner"] }

// Team reads another key.
func Team(object metav1.Object) string { return object.GetAnnotations()["team"] }

// HostIP reads a pod.
func HostIP(pod *corev1.Pod) string { return pod.Status.HostIP }
