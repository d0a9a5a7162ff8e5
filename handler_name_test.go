package cache_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

func TestAHandlerHasThePlaceThatAddsItAsItsName(t *testing.T) {
	informer := nameless(t)
	_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*metav1.PartialObjectMetadata]{})
	require.NoError(t, err)
	_, err = informer.Shared().AddEventHandler(&cache.ResourceEventHandlerFuncs{})
	require.NoError(t, err)
	for _, handler := range informer.Status().Handlers {
		require.Regexp(t, `handler_name_test\.go:\d+$`, handler.Name)
	}
}

func nameless(t *testing.T) *cache.Informer[*metav1.PartialObjectMetadata] {
	source := cachetest.NewSource(cachetest.Options{})
	t.Cleanup(source.Close)
	return cache.NewInformerFor(source, cache.InformerConfig[*metav1.PartialObjectMetadata]{})
}
