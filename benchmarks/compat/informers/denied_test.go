package informers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
)

// controller-runtime's error of a denied permission is a timeout:
// https://github.com/kubernetes-sigs/controller-runtime/issues/1653,
// https://github.com/crossplane/crossplane/issues/7398. The informer's status has the cause and the
// kind.
func TestTheStatusOfAManagersInformerNamesADeniedPermission(t *testing.T) {
	ctx := bounded(t)
	source := newSource()
	denied := apierrors.NewForbidden(configMaps.GroupResource(), "", nil)
	source.FailRequests(cachetest.Forever, denied)
	made := make(chan cache.StatusReporter, 1)
	manager := newManager(t, serve(t, source), func(options *ctrl.Options) {
		options.Cache.NewInformer = func(
			lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers,
		) toolscache.SharedIndexInformer {
			informer := clientgo.NewInformer(lw, example, resync, indexers)
			made <- informer.(cache.StatusReporter)
			return informer
		}
	})
	stop := start(ctx, t, manager)
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	waiting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	ended := make(chan error, 1)
	go func() {
		_, err := manager.GetCache().GetInformer(waiting, object)
		ended <- err
	}()
	informer := next(ctx, t, made)
	isDenied := func() bool { return informer.Status().LastFailure != nil }
	require.Eventually(t, isDenied, time.Minute, time.Millisecond)
	giveUp()
	require.ErrorContains(t, next(ctx, t, ended),
		"failed waiting for *unstructured.Unstructured Informer to sync")

	status := informer.Status()
	require.Regexp(t, `^ConfigMap(#\d+)?$`, status.Name)
	require.Equal(t, "/v1, Kind=ConfigMap", status.TypeDescription)
	require.Equal(t, cache.CauseForbidden, status.LastFailure.Cause)
	require.ErrorContains(t, status.LastFailure.Err, "configmaps is forbidden")
	stop()
}
