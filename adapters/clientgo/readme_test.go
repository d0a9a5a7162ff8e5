package clientgo_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// mirrorPods is what the README shows of mirroring a cluster's objects as Go types. It
// stands here because it needs k8s.io/api, which the root module does not require.
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
	t.Setenv("KUBERNETES_SERVICE_HOST", "") // wherever the test runs
	require.ErrorIs(t, mirrorPods(), kubeapi.ErrNotInCluster)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "### A cluster's objects")
	require.True(t, found)
	_, shown, _ := strings.Cut(section, "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	this, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	_, body, _ := strings.Cut(string(this), "error {\n")
	body, _, _ = strings.Cut(body, "\t_ = pods\n")
	require.Equal(t, strings.ReplaceAll(body, "\n\t", "\n"), "\t"+shown)
}
