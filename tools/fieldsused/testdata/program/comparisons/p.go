// Package comparisons compares objects and parts.
package comparisons

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func whole(a, b *corev1.Pod) bool {
	return reflect.DeepEqual(a, b) && // want "compared "
		equality.Semantic.DeepEqual(a, b) // want "compared "
}

func parts(a, b *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(a.Spec.Containers, b.Spec.Containers) && // want "read spec.containers"
		a.Status.Conditions[0].Type == b.Status.Conditions[0].Type && // want "read status.conditions.type"
		*a.Spec.OS == *b.Spec.OS // want "read spec.os"
}
