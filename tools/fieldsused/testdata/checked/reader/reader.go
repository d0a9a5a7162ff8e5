// Package reader reads objects of the sources that it imports.
package reader // want "sibling.go:20: reads status.hostIP of k8s.io/api/core/v1.Pod"

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/tools/fieldsused/testdata/checked/sibling"
	"github.com/watchmirror/cache/tools/fieldsused/testdata/checked/sources"
)

// Options are the sources.
func Options() []kubeapi.Options { return []kubeapi.Options{sources.Pods(), sources.Services()} }

// Read reads fields.
func Read(pod *corev1.Pod, service *corev1.Service, node *corev1.Node, secret *corev1.Secret) {
	_ = pod.Spec.NodeName
	_ = pod.Name
	_ = pod.Labels["app"]
	_ = pod.Spec.Hostname // want "reads spec.hostname of k8s.io/api/core/v1.Pod, which kubeapi.Options.Fields at sources/sources.go:15 does not keep"
	for _, container := range pod.Spec.Containers {
		_ = container.Image
		_ = container.Name // want "reads spec.containers.name"
	}
	_ = len(pod.Spec.InitContainers) // want "reads spec.initContainers"
	_ = sibling.Phase(&pod.Status)   // want "reads status.phase"
	_ = sibling.Owner(service)
	_ = sibling.Team(service) // want "reads metadata.annotations.team of k8s.io/api/core/v1.Service"
	_ = service.Spec.ClusterIP
	_ = service.Spec.Type // want "reads spec.type"
	_ = node.Spec.PodCIDR
	_ = secret.Data
	_ = (*ownPod)(pod).node()
	own := ownSpec(pod.Spec)
	_ = own.Subdomain // want "reads spec.subdomain of k8s.io/api/core/v1.Pod"
}

type ownSpec corev1.PodSpec

type ownPod corev1.Pod

func (p *ownPod) node() string { return p.Spec.NodeName + p.Spec.SchedulerName } // want "reads spec.schedulerName of k8s.io/api/core/v1.Pod"
