package sides

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/local"
)

// options are those of a handler with that delivery.
func (d Delivery) options() (cache.HandlerOptions, error) {
	switch d {
	case Ordered:
		return cache.HandlerOptions{}, nil
	case Coalesced:
		return cache.HandlerOptions{Delivery: cache.Coalesced}, nil
	}
	return cache.HandlerOptions{}, fmt.Errorf("no delivery %q", d)
}

// typedInformer is our own form, which has an index by namespace by default.
type typedInformer struct {
	*cache.Informer[*corev1.ConfigMap]
}

func newTypedInformer(source *local.Source) Informer {
	return typedInformer{cache.NewInformerFor(source, cache.InformerConfig[*corev1.ConfigMap]{})}
}

func (i typedInformer) Handle(handler Handler, delivery Delivery) error {
	options, err := delivery.options()
	if err != nil {
		return err
	}
	_, err = i.AddHandler(cache.TypedResourceEventHandlerFuncs[*corev1.ConfigMap]{
		AddFunc: func(object *corev1.ConfigMap) {
			if handler.Add != nil {
				handler.Add(object)
			}
		},
		UpdateFunc: func(_, object *corev1.ConfigMap) {
			if handler.Update != nil {
				handler.Update(object)
			}
		},
	}, options)
	return err
}

// Run panics if the informer has been run: an informer of a measurement is run once.
func (i typedInformer) Run(ctx context.Context) {
	if err := i.Informer.Run(ctx); err != nil {
		panic(err)
	}
}

func (i typedInformer) Synced() <-chan struct{} { return i.HasSyncedChecker().Done() }

func (i typedInformer) Get(key string) *corev1.ConfigMap {
	object, _ := i.Lookup(key)
	return object
}

// sharedInformer is the compatible form, made as theirs is.
type sharedInformer struct{ cache.SharedIndexInformer }

func newSharedInformer(source *local.Source) Informer {
	return sharedInformer{cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

func (i sharedInformer) Handle(handler Handler, delivery Delivery) error {
	options, err := delivery.options()
	if err != nil {
		return err
	}
	_, err = i.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if handler.Add != nil {
				handler.Add(obj.(*corev1.ConfigMap))
			}
		},
		UpdateFunc: func(_, obj any) {
			if handler.Update != nil {
				handler.Update(obj.(*corev1.ConfigMap))
			}
		},
	}, options)
	return err
}

func (i sharedInformer) Run(ctx context.Context) { i.RunWithContext(ctx) }

func (i sharedInformer) Synced() <-chan struct{} { return i.HasSyncedChecker().Done() }

func (i sharedInformer) Get(key string) *corev1.ConfigMap {
	obj, _, _ := i.GetStore().GetByKey(key)
	object, _ := obj.(*corev1.ConfigMap)
	return object
}
