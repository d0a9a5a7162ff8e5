// Package methods calls the methods that objects have.
package methods

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func typed(pod *corev1.Pod) {
	_ = pod.GetName()                                // want "read metadata.name"
	_ = pod.GetLabels()["app"]                       // want "read metadata.labels.app"
	_ = pod.GetAnnotations()["a.b/owner"]            // want "read metadata.annotations[a.b/owner]"
	_ = pod.ObjectMeta.GetUID()                      // want "read metadata.uid"
	_ = pod.GetObjectKind().GroupVersionKind()       // want "read kind"
	for _, owner := range pod.GetOwnerReferences() { // want "presence metadata.ownerReferences"
		_ = owner.UID // want "read metadata.ownerReferences.uid"
	}
	pod.SetName("x")
	pod.SetAnnotations(nil)
}

func throughInterfaces(pod *corev1.Pod) {
	var object metav1.Object = pod
	_ = object.GetNamespace()               // want "read metadata.namespace"
	_ = len(object.GetAnnotations())        // want "presence metadata.annotations"
	_ = pod.GetObjectMeta().GetGeneration() // want "read metadata.generation"
	var whole runtime.Object = pod
	accessor, err := meta.Accessor(whole)
	if err != nil {
		return
	}
	_ = accessor.GetFinalizers() // want "read metadata.finalizers"
}

// managed is called with objects of any type, and a pod may be one.
func managed(object metav1.Object) int {
	return len(object.GetManagedFields()) // want "presence metadata.managedFields"
}

func caller(pod *corev1.Pod) { managed(pod) }
