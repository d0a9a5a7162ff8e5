package cache_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
)

// askedInformer is somebody else's informer that notes how it was asked to add a handler.
type askedInformer struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
	options cache.HandlerOptions
}

func (i *askedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	i.handler, i.options = handler, options
	return nil, nil
}

// Fails if a name is made up before the informer is asked, which may have its own way to name a
// handler.
func TestAddTypedEventHandlerPassesItsOptionsOnUnchanged(t *testing.T) {
	type object = *metav1.PartialObjectMetadata
	period, logger := time.Minute, klog.Background()
	handler := cache.TypedResourceEventHandlerFuncs[object]{AddFunc: func(object) {}}
	for _, options := range [][]cache.HandlerOptions{
		nil,
		{{}},
		{{Name: "mine", ResyncPeriod: &period, Logger: &logger, Delivery: cache.Coalesced, SurvivePanics: true}},
	} {
		inner := &askedInformer{SharedIndexInformer: nameless(t).Shared()}
		typed := cache.NewTypedSharedIndexInformer[object](inner)
		for _, h := range []cache.TypedResourceEventHandler[object]{handler, nil} {
			_, err := typed.AddTypedEventHandler(h, options...)
			require.NoError(t, err)
			require.Equal(t, h == nil, inner.handler == nil)
			var want cache.HandlerOptions
			if len(options) > 0 {
				want = options[0]
			}
			require.Equal(t, want, inner.options)
			inner.options = cache.HandlerOptions{Name: "not asked"}
		}
	}
}
