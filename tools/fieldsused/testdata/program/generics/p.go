// Package generics has generic functions and types.
package generics

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func owner[T metav1.Object](object T) string {
	return object.GetAnnotations()["owner"] // want "read metadata.annotations.owner"
}

func apply[T, R any](values []T, f func(T) R) []R { // want "presence spec.containers"
	var results []R
	for _, value := range values {
		results = append(results, f(value))
	}
	return results
}

type box[T any] struct{ value T }

func (b box[T]) get() T { return b.value }

func use(pod *corev1.Pod) {
	_ = owner(pod)
	_ = apply(pod.Spec.Containers, func(c corev1.Container) string {
		return c.Image // want "read spec.containers.image"
	})
	_ = box[*corev1.Pod]{value: pod}.get().Spec.Hostname // want "read spec.hostname"
}
