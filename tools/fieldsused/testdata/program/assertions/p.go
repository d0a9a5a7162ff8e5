// Package assertions gets objects from interface values.
package assertions

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func fromAny(value any) {
	pod, ok := value.(*corev1.Pod)
	if !ok {
		return
	}
	_ = pod.Spec.NodeName // want "read spec.nodeName"
}

func fromObject(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Pod:
		_ = o.Status.Phase // want "read status.phase"
	case *corev1.Node:
		_ = o.Spec.PodCIDR
	}
}

type wrapper struct{ Object any }

func fromField(value any) string {
	if wrapped, ok := value.(wrapper); ok {
		return wrapped.Object.(*corev1.Pod).Spec.Hostname // want "read spec.hostname"
	}
	return ""
}

func part(pod *corev1.Pod) { inspect(&pod.Status) }

func inspect(value any) {
	if status, ok := value.(*corev1.PodStatus); ok {
		_ = status.PodIP // want "read status.podIP"
	}
}

func text(value any) bool {
	_, ok := value.(string)
	return ok
}

func whole(pod *corev1.Pod) bool { return text(pod) }
