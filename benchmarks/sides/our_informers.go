package sides

import (
	"context"
	"fmt"

	"github.com/watchmirror/cache"
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
type typedInformer[T Object] struct {
	*cache.Informer[T]
}

func newTypedInformer[T Object](settings Settings[T]) typedInformer[T] {
	indexes := cache.TypedIndexers[T]{}
	if settings.ByNamespace != nil {
		indexes[cache.NamespaceIndex] = settings.ByNamespace
	}
	return typedInformer[T]{cache.NewTypedInformer(settings.Source, cache.InformerConfig[T]{Indexes: indexes})}
}

func (i typedInformer[T]) Handle(handler Handler[T], delivery Delivery) error {
	options, err := delivery.options()
	if err != nil {
		return err
	}
	_, err = i.AddHandler(cache.TypedResourceEventHandlerFuncs[T]{
		AddFunc: func(object T) {
			if handler.Add != nil {
				handler.Add(object)
			}
		},
		UpdateFunc: func(_, object T) {
			if handler.Update != nil {
				handler.Update(object)
			}
		},
	}, options)
	return err
}

// Run panics if the informer has been run: an informer of a measurement is run once.
func (i typedInformer[T]) Run(ctx context.Context) {
	if err := i.Informer.Run(ctx); err != nil {
		panic(err)
	}
}

func (i typedInformer[T]) Synced() <-chan struct{} { return i.HasSyncedChecker().Done() }

func (i typedInformer[T]) Get(key string) T {
	object, _ := i.Lookup(key)
	return object
}

// sharedInformer is the compatible form, made as theirs is.
type sharedInformer[T Object] struct{ cache.SharedIndexInformer }

func newSharedInformer[T Object](settings Settings[T]) Informer[T] {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	if settings.ByNamespace != nil {
		indexers[cache.NamespaceIndex] = untyped(settings.ByNamespace)
	}
	return sharedInformer[T]{cache.NewSharedIndexInformer(settings.Source, settings.Example, 0, indexers)}
}

func (i sharedInformer[T]) Handle(handler Handler[T], delivery Delivery) error {
	options, err := delivery.options()
	if err != nil {
		return err
	}
	_, err = i.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if handler.Add != nil {
				handler.Add(obj.(T))
			}
		},
		UpdateFunc: func(_, obj any) {
			if handler.Update != nil {
				handler.Update(obj.(T))
			}
		},
	}, options)
	return err
}

func (i sharedInformer[T]) Run(ctx context.Context) { i.RunWithContext(ctx) }

func (i sharedInformer[T]) Synced() <-chan struct{} { return i.HasSyncedChecker().Done() }

func (i sharedInformer[T]) Get(key string) T {
	obj, _, _ := i.GetStore().GetByKey(key)
	object, _ := obj.(T)
	return object
}
