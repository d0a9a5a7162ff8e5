// Package dependency passes an object to a function of another module.
package dependency

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Metadata copies the metadata.
func Metadata(pod *corev1.Pod) *metav1.PartialObjectMetadata {
	return meta.AsPartialObjectMetadata(pod)
}
