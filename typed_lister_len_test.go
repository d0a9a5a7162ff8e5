package cache_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// Anything may be added to the store behind a typed informer. Fails if what is no T counts.
func TestATypedListersLenIsHowManyItLists(t *testing.T) {
	type object = *unstructured.Unstructured
	for name, indexes := range map[string]cache.TypedIndexers[object]{
		"with the namespace index":         nil,
		"with a program's own by its name": {cache.NamespaceIndex: func(object) ([]string, error) { return []string{"all"}, nil }},
	} {
		for _, strays := range []int{0, 1, 3} {
			if indexes != nil && strays > 0 {
				continue // a typed index takes no other type
			}
			t.Run(fmt.Sprintf("%s, %d strays", name, strays), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := cachetest.NewSource(cachetest.Options{})
					for n := range 4 {
						require.NoError(t, source.Apply(configMap("a", fmt.Sprint(n), "x"), configMap("b", fmt.Sprint(n), "x")))
					}
					informer := cache.NewInformerFor(source, cache.InformerConfig[object]{Indexes: indexes})
					ctx, cancel := context.WithCancel(t.Context())
					var running sync.WaitGroup
					running.Go(func() { informer.Run(ctx) })
					synctest.Wait()
					for n := range strays {
						stray := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(n)}}
						require.NoError(t, informer.Shared().GetStore().Add(stray))
					}
					for want, lister := range map[int]cache.TypedLister[object]{
						8 - strays: informer.Lister(), 4 - strays: informer.Lister().ByNamespace("a"), 0: informer.Lister().ByNamespace("none"),
					} {
						all, err := lister.List(nil)
						require.NoError(t, err)
						require.Len(t, all, want)
						require.Equal(t, want, lister.Len())
						require.Equal(t, want, lister.Snapshot().Len())
					}
					require.Equal(t, 4, informer.Lister().ByNamespace("b").Len())
					require.Equal(t, 8-strays, informer.Len())
					cancel()
					running.Wait()
					source.Close()
				})
			})
		}
	}
	require.Zero(t, cache.TypedLister[object]{}.Len())
	require.Zero(t, cache.TypedLister[object]{}.ByNamespace("a").Len())
}
