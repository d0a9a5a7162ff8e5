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

// theirs is a typed or dynamic client of client-go, and a shared informer as cache.
type theirs struct {
	listWatch *cache.ListWatch
	client    any // of listWatch
	example   runtime.Object
}

func openTheirs(target Target) (reader, error) {
	config := &rest.Config{
		Host: target.URL,
		// Without the client's own limit of five requests a second: it costs time, and
		// neither CPU nor memory, which are measured.
		QPS: -1,
	}
	if target.Format == ProtobufTyped {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf
	}
	if target.Format == JSONUnstructured {
		return dynamicClient(config)
	}
	return typedClient(config)
}

func dynamicClient(config *rest.Config) (reader, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	resource := client.Resource(corev1.SchemeGroupVersion.WithResource("pods"))
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return resource.List(ctx, options)
	}
	listWatch := &cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: resource.Watch}
	return &theirs{listWatch: listWatch, client: client, example: &unstructured.Unstructured{}}, nil
}

// typedClient does what a clientset's client of pods does, without the hundreds of
// packages of a clientset.
func typedClient(config *rest.Config) (reader, error) {
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
	request := func(options metav1.ListOptions) *rest.Request {
		return client.Get().Resource("pods").VersionedParams(&options, parameters)
	}
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.PodList{}
			err := request(options).Do(ctx).Into(list)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch = true
			return request(options).Watch(ctx)
		},
	}
	return &theirs{listWatch: listWatch, client: client, example: &corev1.Pod{}}, nil
}

func (t *theirs) listPage(
	ctx context.Context, options metav1.ListOptions, take func(item runtime.Object) error,
) (next string, err error) {
	list, err := t.listWatch.ListWithContext(ctx, options)
	if err != nil {
		return "", err
	}
	if err := meta.EachListItem(list, take); err != nil {
		return "", err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	return about.GetContinue(), nil
}

func (t *theirs) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return t.listWatch.WatchWithContext(ctx, options)
}

func (t *theirs) newCache(_ Strategy, transform transform, onFailure func(err error)) (*Cache, error) {
	source := cache.ToListWatcherWithWatchListSemantics(t.listWatch, t.client)
	indexers := cache.Indexers{namespaceIndex: pods.ByNamespace}
	informer := cache.NewSharedIndexInformer(source, t.example, 0, indexers)
	handleError := func(_ context.Context, _ *cache.Reflector, err error) { onFailure(err) }
	err := errors.Join(
		informer.SetTransform(transform),
		informer.SetWatchErrorHandlerWithContext(handleError),
	)
	return &Cache{
		run:    informer.RunWithContext,
		synced: informer.HasSyncedChecker().Done(),
		store:  informer.GetIndexer(),
	}, err
}
