package clientgo

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// NewListWatchFromClient returns a source that uses a REST client, for a resource in one namespace
// (in all, if it is empty) and for objects that match the field selector (all, if it is nil). It
// replaces the field selector of each request.
//
// Lists and watches are the client's own, decoded by its codecs and limited by its rate limiter. A
// list is held in memory as a whole; NewSourceForClient returns a source that decodes object by
// object. NewInformer streams its first list. To stream in other informers, pass it to
// cache.ToListWatcherWithWatchListSemantics together with the client. It panics if client is nil,
// as a fake clientset's is.
func NewListWatchFromClient(
	client toolscache.Getter, resource, namespace string, fieldSelector fields.Selector,
) *cache.ListWatch {
	return NewFilteredListWatchFromClient(
		client,
		resource,
		namespace,
		func(options *metav1.ListOptions) {
			options.FieldSelector = ""
			if fieldSelector != nil {
				options.FieldSelector = fieldSelector.String()
			}
		},
	)
}

// NewFilteredListWatchFromClient is NewListWatchFromClient with a function that may change the
// options of each request, for example set a label selector. It may be nil. All four functions of
// the ListWatch are set, since some code calls those without a context.
func NewFilteredListWatchFromClient(
	client toolscache.Getter, resource, namespace string,
	optionsModifier func(options *metav1.ListOptions),
) *cache.ListWatch {
	if isNil(client) {
		panic("clientgo.NewFilteredListWatchFromClient: the client is nil")
	}
	c := collection{
		client:    client,
		resource:  resource,
		namespace: namespace,
		modify:    optionsModifier,
	}
	return &cache.ListWatch{
		ListFunc: func(options metav1.ListOptions) (runtime.Object, error) {
			return c.list(context.Background(), options)
		},
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			return c.watch(context.Background(), options)
		},
		ListWithContextFunc:  c.list,
		WatchFuncWithContext: c.watch,
	}
}

// collection is a resource of a client.
type collection struct {
	client              toolscache.Getter
	resource, namespace string
	modify              func(*metav1.ListOptions)
}

func (c collection) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return c.request(options).Do(ctx).Get()
}

func (c collection) watch(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	options.Watch = true
	return c.request(options).Watch(ctx)
}

func (c collection) request(options metav1.ListOptions) *rest.Request {
	if c.modify != nil {
		c.modify(&options)
	}
	request := c.client.Get().Namespace(c.namespace).Resource(c.resource)
	return request.VersionedParams(&options, metav1.ParameterCodec)
}
