package informers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

// newConfigMapInformer is for InformerFor: ours in place of client-go's.
func newConfigMapInformer(client kubernetes.Interface, resync time.Duration) toolscache.SharedIndexInformer {
	lw := clientgo.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", metav1.NamespaceAll, nil)
	return clientgo.NewInformer(lw, &corev1.ConfigMap{}, resync, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
}

// telling is a handler, as programs write them, that tells a channel.
func telling(calls chan<- string) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			calls <- fmt.Sprintf("add %s, initial %t", obj.(*corev1.ConfigMap).Name, isInInitialList)
		},
		UpdateFunc: func(_, newObj any) {
			calls <- fmt.Sprintf("update %s of %s", newObj.(*corev1.ConfigMap).Name, newObj.(*corev1.ConfigMap).Data["owner"])
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				calls <- "tombstone " + tombstone.Key
				return
			}
			calls <- "delete " + obj.(*corev1.ConfigMap).Name
		},
	}
}

func TestAGeneratedFactoryWorksWithOurInformer(t *testing.T) {
	ctx, stop := context.WithCancel(bounded(t))
	source := newSource(configMap("prices", "ann"))
	factory := informers.NewSharedInformerFactoryWithOptions(clientOf(t, serve(t, source)), 0,
		informers.WithTransform(func(obj any) (any, error) {
			obj.(*corev1.ConfigMap).Annotations = map[string]string{"transformed": "yes"}
			return obj, nil
		}))
	ours := factory.InformerFor(&corev1.ConfigMap{}, newConfigMapInformer)
	require.Implements(t, (*cache.StatusReporter)(nil), ours)

	generated := factory.Core().V1().ConfigMaps()
	calls := make(chan string, 10)
	handle, err := generated.Informer().AddEventHandler(telling(calls))
	require.NoError(t, err)
	require.NoError(t, generated.Informer().AddIndexers(toolscache.Indexers{"owner": func(obj any) ([]string, error) {
		return []string{obj.(*corev1.ConfigMap).Data["owner"]}, nil
	}}))

	factory.StartWithContext(ctx)
	factory.StartWithContext(ctx) // starts the informers that do not run yet
	synced := factory.WaitForCacheSyncWithContext(ctx)
	require.NoError(t, synced.AsError())
	require.Len(t, synced.Synced, 1)
	require.True(t, toolscache.WaitFor(ctx, "", handle.HasSyncedChecker()))
	require.True(t, toolscache.WaitForCacheSync(ctx.Done(), generated.Informer().HasSynced, handle.HasSynced))
	require.Equal(t, "add prices, initial true", next(ctx, t, calls))

	require.NoError(t, source.Apply(configMap("stock", "bob")))
	require.Equal(t, "add stock, initial false", next(ctx, t, calls))
	require.NoError(t, source.Apply(configMap("stock", "ann")))
	require.Equal(t, "update stock of ann", next(ctx, t, calls))

	lister := generated.Lister().ConfigMaps("shop")
	found, err := lister.Get("stock")
	require.NoError(t, err)
	require.Equal(t, "ann", found.Data["owner"])
	require.Equal(t, "yes", found.Annotations["transformed"])
	all, err := lister.List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, all, 2)
	byAnn, err := generated.Informer().GetIndexer().ByIndex("owner", "ann")
	require.NoError(t, err)
	require.Len(t, byAnn, 2)

	_, err = source.Delete("shop", "stock")
	require.NoError(t, err)
	require.Equal(t, "delete stock", next(ctx, t, calls))
	_, err = lister.Get("stock")
	require.True(t, apierrors.IsNotFound(err))
	loseSightOf(t, source, "prices")
	require.Equal(t, "tombstone shop/prices", next(ctx, t, calls))

	stop()
	factory.Shutdown()
	require.True(t, ours.IsStopped())
	requireNothingLeft(t)
}

func TestTheTypedInformerOfAGeneratedFactoryWorksWithOurs(t *testing.T) {
	ctx, stop := context.WithCancel(bounded(t))
	source := newSource(configMap("prices", "ann"))
	factory := informers.NewSharedInformerFactory(clientOf(t, serve(t, source)), 0)
	factory.InformerFor(&corev1.ConfigMap{}, newConfigMapInformer)
	typed := factory.Core().V1().ConfigMaps().TypedInformer()
	deleted := make(chan toolscache.DeletedObject[*corev1.ConfigMap], 1)
	_, err := typed.AddTypedEventHandler(toolscache.TypedResourceEventHandlerFuncs[*corev1.ConfigMap]{
		DeleteFunc: func(last toolscache.DeletedObject[*corev1.ConfigMap]) { deleted <- last },
	})
	require.NoError(t, err)
	require.NoError(t, typed.AddTypedIndexers(toolscache.TypedIndexers[*corev1.ConfigMap]{
		"owner": func(obj *corev1.ConfigMap) ([]string, error) { return []string{obj.Data["owner"]}, nil },
	}))
	factory.Start(ctx.Done())
	for of, synced := range factory.WaitForCacheSync(ctx.Done()) {
		require.True(t, synced, of)
	}
	byAnn, err := typed.GetTypedIndexer().ByTypedIndex("owner", "ann")
	require.NoError(t, err)
	require.Len(t, byAnn, 1)

	loseSightOf(t, source, "prices")
	last := next(ctx, t, deleted)
	require.Equal(t, "shop/prices", last.FinalStateUnknown.Key)
	require.Equal(t, "prices", last.OptionalObj.Name)
	stop()
	factory.Shutdown()
	requireNothingLeft(t)
}

func TestAGeneratedFactorySaysWhichOfOurInformersHasNotSynced(t *testing.T) {
	source := newSource()
	source.HangWatches(1) // the first state is streamed
	factory := informers.NewSharedInformerFactory(clientOf(t, serve(t, source)), 0)
	factory.InformerFor(&corev1.ConfigMap{}, newConfigMapInformer)
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	factory.StartWithContext(ctx)
	synced := factory.WaitForCacheSyncWithContext(ctx)
	require.ErrorIs(t, synced.AsError(), context.DeadlineExceeded)
	require.ErrorContains(t, synced.AsError(), "*v1.ConfigMap")
	factory.Shutdown()
	requireNothingLeft(t)
}

// The informer ends before the wait does: a generated factory takes a checker that is
// done for one that has come true.
func TestAGeneratedFactoryDoesNotTakeAStoppedInformerForASyncedOne(t *testing.T) {
	source := newSource()
	source.HangWatches(1) // the first state is streamed
	factory := informers.NewSharedInformerFactory(clientOf(t, serve(t, source)), 0)
	factory.InformerFor(&corev1.ConfigMap{}, newConfigMapInformer)
	run, stop := context.WithCancel(bounded(t))
	factory.StartWithContext(run)
	stop()
	factory.Shutdown()
	wait, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	synced := factory.WaitForCacheSyncWithContext(wait)
	require.ErrorIs(t, synced.AsError(), context.DeadlineExceeded)
}

// The namespace of the factory is given twice: that of the collection counts.
func TestASwitchedFactoryHasTheNamespaceOfTheCollection(t *testing.T) {
	ctx, stop := context.WithCancel(bounded(t))
	source := newSource(configMap("prices", "ann"))
	elsewhere := configMap("desks", "bob")
	elsewhere.Namespace = "office"
	require.NoError(t, source.Apply(elsewhere))
	config := serve(t, source)
	names := func(namespace string) []string {
		factory, _, err := switchFactory(clientOf(t, config), namespace, nil)
		require.NoError(t, err)
		lister := factory.Core().V1().ConfigMaps().Lister()
		factory.StartWithContext(ctx)
		require.NoError(t, factory.WaitForCacheSyncWithContext(ctx).AsError())
		all, err := lister.List(labels.Everything())
		require.NoError(t, err)
		var names []string
		for _, found := range all {
			names = append(names, found.Name)
		}
		return names
	}
	require.Equal(t, []string{"prices"}, names("shop"))
	require.ElementsMatch(t, []string{"prices", "desks"}, names(metav1.NamespaceAll))
	stop()
}
