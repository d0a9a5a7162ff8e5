package sides

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/pods"
	"github.com/watchmirror/cache/kubeapi"
)

// ours is this library: kubeapi as source, cache.New as cache.
type ours struct{ source *kubeapi.ListerWatcher }

func openOurs(target Target) (Source, error) {
	options := kubeapi.Options{
		BaseURL:   target.URL,
		Resource:  corev1.SchemeGroupVersion.WithResource("pods"),
		Encodings: []kubeapi.Encoding{kubeapi.JSON},
		// A pool of connections of its own, as client-go's clients have.
		HTTPClient: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()},
	}
	if target.Encoding == Protobuf {
		options.Encodings = []kubeapi.Encoding{kubeapi.Protobuf}
	}
	if target.Objects == Typed {
		options.ObjectType = &corev1.Pod{}
	}
	if target.Projected {
		options.Fields = Fields
	}
	source, err := kubeapi.New(options)
	if err != nil {
		return nil, err
	}
	return &ours{source}, nil
}

func (o *ours) List(ctx context.Context, limit int64, pages int) (int, error) {
	items := 0
	take := func(_ metav1.ListMeta, item runtime.Object) error {
		items++
		return named(item)
	}
	options := metav1.ListOptions{Limit: limit}
	for page := 1; ; page++ {
		list, err := o.source.ListItems(ctx, options, take)
		if err != nil || list.Continue == "" || page == pages {
			return items, err
		}
		options.Continue = list.Continue
	}
}

func (o *ours) Watch(ctx context.Context, options metav1.ListOptions, events int) (int, error) {
	w, err := o.source.WatchWithContext(ctx, options)
	if err != nil {
		return 0, err
	}
	return drain(ctx, w, events)
}

func (o *ours) Fill(ctx context.Context, strategy Strategy, strip func(any) (any, error)) (*Cache, error) {
	strategies := map[Strategy]cache.ListStrategy{Pages: cache.ListPaged, Whole: cache.ListUnpaged}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{namespaceIndex: pods.ByNamespace})
	f := &filling{
		cache:  &Cache{indexer: indexer, done: make(chan struct{})},
		failed: make(chan error, 1),
	}
	controller := cache.New(&cache.Config{
		ListerWatcher: o.source,
		Store:         indexer,
		Transform:     strip,
		ReflectorOptions: cache.ReflectorOptions{
			Strategy:     strategies[strategy],
			ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { f.report(err) },
		},
	})
	f.run = controller.RunWithContext
	f.synced = controller.HasSyncedChecker().Done()
	return f.fill(ctx)
}
