package sides

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/pods"
	"github.com/watchmirror/cache/kubeapi"
)

// ours is kubeapi, and cache.New as cache.
type ours struct{ source *kubeapi.ListerWatcher }

func openOurs(target Target) (reader, error) {
	options := kubeapi.Options{
		BaseURL:   target.URL,
		Resource:  corev1.SchemeGroupVersion.WithResource("pods"),
		Encodings: []kubeapi.Encoding{kubeapi.JSON},
		// A pool of connections of its own, as client-go's clients have.
		HTTPClient: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()},
	}
	if target.Format == ProtobufTyped {
		options.Encodings = []kubeapi.Encoding{kubeapi.Protobuf}
	}
	if target.Format != JSONUnstructured {
		options.ObjectType = &corev1.Pod{}
	}
	if target.Projected {
		options.Fields = projection
	}
	source, err := kubeapi.New(options)
	return &ours{source}, err
}

func (o *ours) listPage(
	ctx context.Context, options metav1.ListOptions, take func(item runtime.Object) error,
) (next string, err error) {
	takeItem := func(_ metav1.ListMeta, item runtime.Object) error { return take(item) }
	list, err := o.source.ListItems(ctx, options, takeItem)
	return list.Continue, err
}

func (o *ours) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return o.source.WatchWithContext(ctx, options)
}

func (o *ours) newCache(
	strategy Strategy, transform transform, onFailure func(err error),
) (*Cache, error) {
	strategies := map[Strategy]cache.ListStrategy{Pages: cache.ListPaged, Whole: cache.ListUnpaged}
	indexers := cache.Indexers{namespaceIndex: pods.ByNamespace}
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	controller := cache.New(&cache.Config{
		ListerWatcher: o.source,
		Store:         store,
		Transform:     transform,
		ReflectorOptions: cache.ReflectorOptions{
			Strategy:     strategies[strategy],
			ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { onFailure(err) },
		},
	})
	return &Cache{
		run:    controller.RunWithContext,
		synced: controller.HasSyncedChecker().Done(),
		store:  store,
	}, nil
}
