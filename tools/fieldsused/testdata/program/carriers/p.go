// Package carriers passes objects through code that holds and returns them.
package carriers

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
)

func through(pod *corev1.Pod, store cache.Store, kept *sync.Map, latest *atomic.Pointer[corev1.Pod]) error {
	if err := store.Add(pod); err != nil {
		return err
	}
	kept.Store("x", pod)
	latest.Store(pod)
	_ = context.WithValue(context.Background(), kept, pod)
	_ = latest.Load().Spec.NodeName // want "read spec.nodeName"
	for _, object := range store.List() {
		_ = object.(*corev1.Pod).Spec.Hostname // want "read spec.hostname"
	}
	copied := slices.Clone(pod.Spec.Containers)
	_ = copied[0].Image                                                               // want "read spec.containers.image"
	_ = ptr.Deref(pod.Spec.SecurityContext, corev1.PodSecurityContext{}).RunAsNonRoot // want "read spec.securityContext.runAsNonRoot"
	_, err := cache.MetaNamespaceKeyFunc(pod)
	return err
}
