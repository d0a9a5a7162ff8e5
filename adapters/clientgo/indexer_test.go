package clientgo_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

func byApp(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Labels["app"]}, nil }

// filled returns an indexer of pods with the namespace index.
func filled(t *testing.T, names ...string) cache.Indexer {
	t.Helper()
	indexer := cache.NewIndexer(
		cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, name := range names {
		require.NoError(t, indexer.Add(pod(name, "1")))
	}
	return indexer
}

func TestIndexesOfEitherSideAreOneSet(t *testing.T) {
	ours := filled(t, "web-0", "web-1")
	theirs := clientgo.Indexer(ours)
	require.NoError(t, theirs.AddIndexers(toolscache.Indexers{"app": byApp}))
	found, err := ours.ByIndex("app", "web-1")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.NoError(t, ours.AddIndexers(cache.Indexers{"app too": byApp}))
	keys, err := theirs.IndexKeys("app too", "web-0")
	require.NoError(t, err)
	require.Equal(t, []string{"shop/web-0"}, keys)

	functions := theirs.GetIndexers()
	require.Len(t, functions, 3)
	values, err := functions["app"](pod("web-2", ""))
	require.NoError(t, err)
	require.Equal(t, []string{"web-2"}, values)
}

// controller-runtime calls GetIndexers for each list.
func TestIndexersAreKeptUntilOneIsAdded(t *testing.T) {
	ours := filled(t)
	theirs := clientgo.Indexer(ours)
	kept := reflect.ValueOf(theirs.GetIndexers()).Pointer()
	require.Equal(t, kept, reflect.ValueOf(theirs.GetIndexers()).Pointer())
	require.NoError(t, theirs.AddIndexers(toolscache.Indexers{"app": byApp}))
	require.Contains(t, theirs.GetIndexers(), "app")
	require.NoError(t, ours.AddIndexers(cache.Indexers{"app too": byApp}))
	require.Contains(t, theirs.GetIndexers(), "app too")
}

func TestIndexersThatCannotBeAddedAreRefusedByName(t *testing.T) {
	theirs := clientgo.Indexer(filled(t, "web-0"))
	require.ErrorContains(t, theirs.AddIndexers(toolscache.Indexers{"app": nil}), `"app"`)
	require.ErrorContains(
		t, theirs.AddIndexers(toolscache.Indexers{toolscache.NamespaceIndex: byApp}),
		"indexer conflict: map[namespace:{}]")
	require.Len(t, theirs.GetIndexers(), 1)
	informer, _ := podInformer(podSource(t))
	require.ErrorContains(t, informer.AddIndexers(toolscache.Indexers{"app": nil}), `"app"`)
	require.NoError(t, informer.AddIndexers(toolscache.Indexers{"app": byApp}))
	require.Contains(t, informer.GetIndexer().GetIndexers(), "app")
}

func TestATombstoneOfClientGoStandsForItsObjectInAnIndexer(t *testing.T) {
	ours := filled(t, "web-0", "web-1")
	theirs := clientgo.Indexer(ours)
	tombstone := toolscache.DeletedFinalStateUnknown{Key: "shop/web-0", Obj: pod("web-0", "1")}
	found, exists, err := theirs.Get(tombstone)
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, "web-0", found.(*corev1.Pod).Name)

	require.NoError(t, theirs.Delete(tombstone))
	require.Equal(t, []string{"shop/web-1"}, ours.ListKeys())
	_, exists, err = theirs.Get(tombstone)
	require.NoError(t, err)
	require.False(t, exists)
	require.NoError(t, theirs.Delete(tombstone), "there is nothing to delete")

	found, exists, err = theirs.Get(pod("web-1", ""))
	require.NoError(t, err)
	require.True(t, exists)
	require.NoError(t, theirs.Delete(found))
	require.Empty(t, theirs.List())
}

func TestAGeneratedListerReadsOurIndexer(t *testing.T) {
	ours := filled(t, "web-0", "web-1")
	elsewhere := pod("web-2", "1")
	elsewhere.Namespace = "office"
	require.NoError(t, ours.Add(elsewhere))
	lister := corelisters.NewPodLister(clientgo.Indexer(ours))
	all, err := lister.List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, all, 3)
	selected, err := lister.Pods("shop").List(labels.SelectorFromSet(labels.Set{"app": "web-1"}))
	require.NoError(t, err)
	require.Len(t, selected, 1)
	found, err := lister.Pods("office").Get("web-2")
	require.NoError(t, err)
	require.Same(t, elsewhere, found, "the object is shared")
	_, err = lister.Pods("office").Get("web-0")
	require.True(t, apierrors.IsNotFound(err))
}

func TestAGenericListerOfOursIsOneOfClientGos(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	lister := clientgo.GenericLister(cache.NewGenericLister(filled(t, "web-0", "web-1"), resource))
	all, err := lister.List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, all, 2)
	found, err := lister.ByNamespace("shop").Get("web-1")
	require.NoError(t, err)
	require.Equal(t, "web-1", found.(*corev1.Pod).Name)
	_, err = lister.Get("shop/web-2")
	require.True(t, apierrors.IsNotFound(err))
}

// For a generated lister, a key whose only state is quarantined is not NotFound, and deleting a
// tombstone of it does nothing and returns no error.
func TestAQuarantinedKeyIsNotNotFoundForClientGo(t *testing.T) {
	refused := errors.New("refused")
	ours := cache.NewIndexer(
		cache.MetaNamespaceKeyFunc,
		cache.Indexers{"i": func(any) ([]string, error) { return nil, refused }})
	require.Error(t, ours.Add(pod("web-0", "1")))
	theirs := clientgo.Indexer(ours)
	_, err := corelisters.NewPodLister(theirs).Pods("shop").Get("web-0")
	require.ErrorIs(t, err, cache.ErrQuarantined)
	require.ErrorIs(t, err, refused)
	require.False(t, apierrors.IsNotFound(err))
	require.NoError(t, theirs.Delete(toolscache.DeletedFinalStateUnknown{Key: "shop/web-0"}))
}
