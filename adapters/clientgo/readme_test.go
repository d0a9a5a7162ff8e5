package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
)

// mirrorPods is the README's code that mirrors a cluster's objects as Go types. It is here because it needs k8s.io/api,
// which the root module does not require.
func mirrorPods() error {
	options, err := kubeapi.InCluster()
	if err != nil {
		return err // outside of a cluster: kubeapi.Options{BaseURL: "http://127.0.0.1:8001"}, with kubectl proxy
	}
	options.Resource = corev1.SchemeGroupVersion.WithResource("pods")
	options.ObjectType = &corev1.Pod{} // without it: unstructured objects, in JSON
	source, err := kubeapi.New(options)
	if err != nil {
		return err
	}
	pods := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.Pod]{})
	_ = pods
	return nil
}

func TestTheREADMEsPodsAreMirroredSo(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // independent of where the test runs
	require.ErrorIs(t, mirrorPods(), kubeapi.ErrNotInCluster)
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
