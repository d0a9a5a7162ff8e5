package sides

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache/benchmarks/pods"
)

// clientGo is client-go: a typed or dynamic client as source, a shared informer as cache.
type clientGo struct {
	list    func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	watch   func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	client  any // what list and watch belong to
	example runtime.Object
}

func openClientGo(target Target) (Source, error) {
	config := &rest.Config{
		Host: target.URL,
		// Without the client's own limit of five requests a second: it costs time, and
		// neither CPU nor memory, which are measured.
		QPS: -1,
	}
	if target.Encoding == Protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf
	}
	if target.Objects == Unstructured {
		return dynamicClient(config)
	}
	return typedClient(config)
}

func dynamicClient(config *rest.Config) (Source, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resource := client.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	return &clientGo{
		list:    listing(resource),
		watch:   resource.Watch,
		client:  client,
		example: &unstructured.Unstructured{},
	}, nil
}

// listing is the resource's List with the signature of a ListWatch.
func listing(resource dynamic.ResourceInterface) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return resource.List(ctx, options)
	}
}

// typedClient does what a clientset's client of pods does, without the hundreds of
// packages of a clientset.
func typedClient(config *rest.Config) (Source, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	parameters := runtime.NewParameterCodec(scheme)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &clientGo{
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.PodList{}
			err := client.Get().Resource("pods").VersionedParams(&options, parameters).Do(ctx).Into(list)
			return list, err
		},
		watch: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return client.Get().Resource("pods").VersionedParams(&options, parameters).Watch(ctx)
		},
		client:  client,
		example: &corev1.Pod{},
	}, nil
}

func (c *clientGo) List(ctx context.Context, limit int64, pages int) (int, error) {
	items := 0
	options := metav1.ListOptions{Limit: limit}
	for page := 1; ; page++ {
		list, err := c.list(ctx, options)
		if err != nil {
			return items, err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error {
			items++
			return named(item)
		})
		if err != nil {
			return items, err
		}
		about, err := meta.ListAccessor(list)
		if err != nil || about.GetContinue() == "" || page == pages {
			return items, err
		}
		options.Continue = about.GetContinue()
	}
}

func (c *clientGo) Watch(ctx context.Context, options metav1.ListOptions, events int) (int, error) {
	w, err := c.watch(ctx, options)
	if err != nil {
		return 0, err
	}
	return drain(ctx, w, events)
}

func (c *clientGo) Fill(ctx context.Context, _ Strategy, strip func(any) (any, error)) (*Cache, error) {
	source := cache.ToListWatcherWithWatchListSemantics(
		&cache.ListWatch{ListWithContextFunc: c.list, WatchFuncWithContext: c.watch}, c.client)
	informer := cache.NewSharedIndexInformer(source, c.example, 0, cache.Indexers{namespaceIndex: pods.ByNamespace})
	f := &filling{
		cache:  &Cache{indexer: informer.GetIndexer(), done: make(chan struct{})},
		run:    informer.RunWithContext,
		synced: informer.HasSyncedChecker().Done(),
		failed: make(chan error, 1),
	}
	onFailure := func(_ context.Context, _ *cache.Reflector, err error) { f.report(err) }
	err := errors.Join(informer.SetTransform(strip), informer.SetWatchErrorHandlerWithContext(onFailure))
	if err != nil {
		return nil, err
	}
	return f.fill(ctx)
}
