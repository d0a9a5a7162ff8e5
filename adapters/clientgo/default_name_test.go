package clientgo_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

// controller-runtime makes an informer for each of its DefaultNamespaces.
func TestInformersOfOneTypeHaveDifferentNames(t *testing.T) {
	names := map[string]bool{}
	for range 3 {
		informer := clientgo.NewInformer(podSource(t), &corev1.Service{}, 0, nil)
		name := informer.(cache.StatusReporter).Status().Name
		require.Regexp(t, `^v1\.Service(#\d+)?$`, name)
		names[name] = true
	}
	require.Len(t, names, 3)
}
