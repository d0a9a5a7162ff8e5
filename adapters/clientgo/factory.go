package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/option"
)

// Factory is a generated informer factory, client-go's or that of another clientset.
type Factory[NewInformer any] interface {
	InformerFor(obj runtime.Object, newFunc NewInformer) toolscache.SharedIndexInformer
}

// Collection is a generated client of one resource, in one namespace or in all:
// clientset.CoreV1().Pods(namespace), for example.
type Collection[List runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (List, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// FactoryOptions are options that InformerFor cannot read from a factory.
type FactoryOptions struct {
	// TweakListOptions, if set, changes the options of each list and watch, possibly concurrently.
	// Pass the factory's function of WithTweakListOptions.
	TweakListOptions func(*metav1.ListOptions)

	// Informer are the options of the informer. ResyncPeriod must be 0: resync period and transform
	// are the factory's.
	Informer cache.SharedIndexInformerOptions
}

// InformerFor makes the factory's informer for the type of example an informer of this library, and
// returns it. From then on, all informers and listers of the factory for this type use it. The type
// arguments are inferred:
//
//	factory := informers.NewSharedInformerFactoryWithOptions(
//		clientset, resync, informers.WithNamespace("shop"))
//	informer, err := clientgo.InformerFor(factory, &corev1.Pod{}, clientset.CoreV1().Pods("shop"))
//
// The result is a cache.StatusReporter. factory.Core().V1().Pods().Informer() is none, because
// client-go v0.37 wraps it in a typed informer; its GetController() is one. So this shows whether
// an informer is of this library:
//
//	_, ours := factory.Core().V1().Pods().Informer().GetController().(cache.StatusReporter)
//
// The namespace is that of the collection, and the selectors are those of the options, because a
// factory does not expose its own. Resync period and transform are the factory's. Fake clientsets
// work too. The informer has client-go's namespace index.
//
// Call it before anything else requests the type from the factory. Otherwise it returns the
// factory's existing informer and ErrInformerExists. It returns an error if the objects of the
// collection have another type than example. It starts no goroutine and sends nothing. It panics if
// the factory or the collection is nil, and under the conditions of NewInformerFunc.
func InformerFor[
	NewInformer ~func(Clientset, time.Duration) toolscache.SharedIndexInformer,
	Clientset any,
	List runtime.Object,
](
	factory Factory[NewInformer],
	example runtime.Object,
	collection Collection[List],
	optional ...FactoryOptions,
) (toolscache.SharedIndexInformer, error) {
	options := option.AtMostOne("clientgo.InformerFor", optional)
	if isNil(factory) || isNil(collection) {
		panic("clientgo.InformerFor: the factory or the collection is nil")
	}
	if listed := listedType[List](); listed != nil && listed != reflect.TypeOf(example) {
		return nil, fmt.Errorf(
			"clientgo.InformerFor: the collection has objects of type %v, the example is a %T",
			listed, example)
	}
	newInformer := NewInformerFunc(options.Informer)
	made := false
	informer := factory.InformerFor(
		example,
		func(clientset Clientset, resync time.Duration) toolscache.SharedIndexInformer {
			made = true
			// Fake clientsets report that they cannot stream.
			lw := cache.ToListWatcherWithWatchListSemantics(
				NewSourceOf(collection, options.TweakListOptions), clientset)
			return newInformer(
				lw, example, resync,
				toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
		},
	)
	if !made {
		return informer, fmt.Errorf("%w: %T", ErrInformerExists, example)
	}
	return informer, nil
}

// listedType returns the type of the objects of a generated list, nil if it has no Items.
func listedType[List runtime.Object]() reflect.Type {
	list := reflect.TypeFor[List]()
	if list.Kind() != reflect.Pointer || list.Elem().Kind() != reflect.Struct {
		return nil
	}
	items, found := list.Elem().FieldByName("Items")
	if !found || items.Type.Kind() != reflect.Slice {
		return nil
	}
	return reflect.PointerTo(items.Type.Elem())
}

// NewSourceOf makes a source of a generated client, a fake one included, for informers that the
// program constructs:
//
//	source := clientgo.NewSourceOf(clientset.CoreV1().Pods("shop"))
//	pods := cache.NewTypedInformer[*corev1.Pod](source)
//
// A function tweak changes the options of each list and watch, possibly concurrently.
// The client decodes whole lists; NewSource and NewSourceForClient decode one item at a time. The
// first list is not streamed. It panics if the collection is nil.
func NewSourceOf[List runtime.Object](
	collection Collection[List], optionalTweak ...func(*metav1.ListOptions),
) *cache.ListWatch {
	tweak := option.AtMostOne("clientgo.NewSourceOf", optionalTweak)
	if isNil(collection) {
		panic("clientgo.NewSourceOf: the collection is nil")
	}
	if tweak == nil {
		tweak = func(*metav1.ListOptions) {}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, options metav1.ListOptions,
		) (runtime.Object, error) {
			tweak(&options)
			list, err := collection.List(ctx, options)
			if err != nil {
				return nil, err // a list returned with an error may be a nil pointer
			}
			return list, nil
		},
		WatchFuncWithContext: func(
			ctx context.Context, options metav1.ListOptions,
		) (watch.Interface, error) {
			tweak(&options)
			return collection.Watch(ctx, options)
		},
	}
}
