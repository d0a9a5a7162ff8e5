// Package selectors selects fields, also of embedded structs, pointers and copies.
package selectors

import corev1 "k8s.io/api/core/v1"

func fields(pod *corev1.Pod, value corev1.Pod) {
	_ = pod.Spec.NodeName                           // want "read spec.nodeName"
	_ = value.Status.Phase                          // want "read status.phase"
	_ = pod.Name                                    // want "read metadata.name"
	_ = pod.ObjectMeta.Namespace                    // want "read metadata.namespace"
	_ = pod.Kind                                    // want "read kind"
	_ = *pod.Spec.Priority                          // want "read spec.priority"
	_ = pod.Spec.Containers[0].Image                // want "read spec.containers.image"
	_ = pod.Spec.Volumes[0].ConfigMap.Name          // want "read spec.volumes.configMap.name"
	_ = pod.Spec.Containers[0].Ports[1].HostPort    // want "read spec.containers.ports.hostPort"
	_ = pod.Spec.Containers[0].Command              // want "read spec.containers.command"
	_ = pod.Spec.Containers[0].VolumeMounts[0].Name // want "read spec.containers.volumeMounts.name"
}

func copies(pod *corev1.Pod) string {
	spec := pod.Spec
	status := &pod.Status
	first := spec.Containers[0]
	_ = status.HostIP      // want "read status.hostIP"
	_ = spec.SchedulerName // want "read spec.schedulerName"
	return first.Name      // want "read spec.containers.name"
}

func joined(pod *corev1.Pod, init bool) string {
	containers := pod.Spec.Containers
	if init {
		containers = pod.Spec.InitContainers
	}
	return containers[0].Name // want "read spec.containers.name" "read spec.initContainers.name"
}

// other reads fields of another type, which are none of the pod's.
func other(template *corev1.PodTemplateSpec, node *corev1.Node) {
	_ = template.Spec.Hostname
	_ = node.Spec.PodCIDR
}
