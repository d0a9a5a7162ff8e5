package local

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// list is a list of pointers: one of values would be copied by every informer, item by
// item or whole, and the objects are not measured.
type list struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*corev1.ConfigMap
}

// DeepCopyObject implements runtime.Object. The items are shared.
func (l *list) DeepCopyObject() runtime.Object {
	other := *l
	other.Items = slices.Clone(l.Items)
	return &other
}
