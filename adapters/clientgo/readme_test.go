package clientgo_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
)

// mirrorPods returns when ctx ends.
func mirrorPods(ctx context.Context) error {
	options, err := kubeapi.InCluster() // elsewhere: kubeapi.Options{BaseURL: "http://127.0.0.1:8001"}, with kubectl proxy
	if err != nil {
		return err
	}
	options.Resource = corev1.SchemeGroupVersion.WithResource("pods")
	options.ObjectType = &corev1.Pod{} // without it: unstructured objects
	source, err := kubeapi.New(options)
	if err != nil {
		return err
	}
	pods := cache.NewTypedInformer[*corev1.Pod](source)
	_, err = pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc: func(pod *corev1.Pod) { fmt.Println("added", pod.Name) },
	})
	if err != nil {
		return err
	}
	return pods.Run(ctx)
}

// The code stands here because it needs k8s.io/api, which the root module does not require.
func TestTheREADMEShowsCodeThatCompiles(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	here, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	_, code, found := strings.Cut(string(readme), "// mirrorPods returns")
	require.True(t, found)
	code, _, found = strings.Cut(code, "```")
	require.True(t, found)
	require.Contains(t, string(here), code)

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
