package pods

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (s *shape) status(id identity, spec corev1.PodSpec) corev1.PodStatus {
	created, ready := metav1.Time{Time: id.created}, metav1.Time{Time: id.ready}
	status := corev1.PodStatus{
		Phase:     corev1.PodRunning,
		HostIP:    id.hostIP,
		HostIPs:   []corev1.HostIP{{IP: id.hostIP}},
		PodIP:     id.podIP,
		PodIPs:    []corev1.PodIP{{IP: id.podIP}},
		StartTime: &created,
		QOSClass:  corev1.PodQOSBurstable,
	}
	for _, condition := range []struct {
		kind corev1.PodConditionType
		at   metav1.Time
	}{
		{corev1.PodReadyToStartContainers, ready},
		{corev1.PodInitialized, ready},
		{corev1.PodReady, ready},
		{corev1.ContainersReady, ready},
		{corev1.PodScheduled, created},
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: condition.kind, Status: corev1.ConditionTrue, LastTransitionTime: condition.at})
	}
	for n, container := range spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, s.containerStatus(container, id, n))
	}
	return status
}

// containerStatus is of a container that was started again once.
func (s *shape) containerStatus(container corev1.Container, id identity, n int) corev1.ContainerStatus {
	created, ready := metav1.Time{Time: id.created}, metav1.Time{Time: id.ready}
	var mounts []corev1.VolumeMountStatus
	for _, mount := range container.VolumeMounts {
		mounts = append(mounts, corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath,
			ReadOnly: mount.ReadOnly, RecursiveReadOnly: pointer(corev1.RecursiveReadOnlyDisabled)})
	}
	return corev1.ContainerStatus{
		Name:  container.Name,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ready}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", StartedAt: created, FinishedAt: ready, ContainerID: "containerd://" + id.containers[2*n]}},
		Ready:        true,
		RestartCount: 1,
		Image:        container.Image,
		ImageID:      container.Image + "@sha256:" + s.random.hex(32),
		ContainerID:  "containerd://" + id.containers[2*n+1],
		Started:      pointer(true),
		Resources:    &container.Resources,
		VolumeMounts: mounts,
	}
}
