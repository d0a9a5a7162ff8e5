// Package controller is a small controller.
package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Placement says where the containers of a pod run.
func Placement(pod *corev1.Pod, selector labels.Selector) (string, bool) {
	if pod.DeletionTimestamp != nil || !selector.Matches(labels.Set(pod.Labels)) {
		return "", false
	}
	text := pod.Spec.NodeName
	for _, container := range pod.Spec.Containers {
		text += " " + container.Image
	}
	return text, pod.Annotations["example.com/placed"] != ""
}

// Dump is for debugging.
func Dump(pod *corev1.Pod) string { return fmt.Sprint(pod.Spec.Affinity) }

// Differs compares.
func Differs(a, b *corev1.Pod) bool { return a.Status.Phase != b.Status.Phase }
