// Package containers keeps objects in fields, maps, lists, channels and globals.
package containers

import corev1 "k8s.io/api/core/v1"

type holder struct {
	pod  *corev1.Pod
	any  any
	pods map[string]*corev1.Pod
	list []corev1.Pod
}

var global *corev1.Pod

func put(h *holder, pod *corev1.Pod, queue chan *corev1.Pod) {
	h.pod = pod
	h.any = pod
	h.pods["x"] = pod
	h.list = append(h.list, *pod)
	global = pod
	queue <- pod
}

func get(h *holder, queue chan *corev1.Pod) {
	_ = h.pod.Spec.NodeName               // want "read spec.nodeName"
	_ = h.any.(*corev1.Pod).Spec.Hostname // want "read spec.hostname"
	_ = h.pods["x"].Status.Phase          // want "read status.phase"
	_ = h.list[0].Status.PodIP            // want "read status.podIP"
	_ = global.Status.HostIP              // want "read status.hostIP"
	_ = (<-queue).Status.Reason           // want "read status.reason"
	for _, pod := range h.pods {
		_ = pod.Spec.Subdomain // want "read spec.subdomain"
	}
	var list corev1.PodList
	for i := range list.Items {
		_ = list.Items[i].Spec.HostNetwork // want "read spec.hostNetwork"
	}
	select {
	case pod := <-queue:
		_ = pod.Status.Message // want "read status.message"
	default:
	}
}
