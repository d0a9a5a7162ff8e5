package clientgo_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
)

// The README's code stands in readme_pods_test.go because it needs k8s.io/api, which the root
// module does not require.
func TestTheREADMEsPodsAreMirroredInAClusterOnly(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // independent of where the test runs
	require.ErrorIs(t, mirrorPods(t.Context()), kubeapi.ErrNotInCluster)
}

// shareOfPods is the code of docs/scaling.md.
func shareOfPods(source cache.Source, index int) *cache.Informer[*corev1.Pod] {
	share := sharding.NewSelector(sharding.Split(3)[index]) // index: 0, 1 or 2, such as the ordinal of a StatefulSet's pod
	pods := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{
		ReflectorOptions: cache.ReflectorOptions{ShardSelector: share},
	})
	return pods
}

func TestTheDocumentedReplicaIsOneOfThree(t *testing.T) {
	for index := range 3 {
		require.NotNil(t, shareOfPods(cachetest.NewTestSource(t, cachetest.Options{}), index))
	}
	require.Panics(t, func() { shareOfPods(nil, 3) })
}

// podsForMemory is the transform of docs/memory.md.
func podsForMemory(source cache.Source) *cache.Informer[*corev1.Pod] {
	return cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{
		Transform: func(pod *corev1.Pod) (*corev1.Pod, error) {
			pod.ManagedFields = nil
			delete(pod.Annotations, corev1.LastAppliedConfigAnnotation)
			return pod, nil
		},
	})
}

func TestTheDocumentedTransformDropsTheLastAppliedConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewTestSourceOf[*corev1.Pod](t)
		source.MustApply(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web",
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "shop"},
		}})
		pods := podsForMemory(source)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { pods.Run(ctx) })
		require.NoError(t, pods.WaitSynced(ctx))
		pod, err := pods.Get("shop/web")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"team": "shop"}, pod.Annotations)
		cancel()
		running.Wait()
	})
}
