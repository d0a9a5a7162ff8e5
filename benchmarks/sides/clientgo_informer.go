package sides

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// theirInformer is client-go's shared informer with the index that factories give it.
type theirInformer[T Object] struct{ cache.SharedIndexInformer }

func newTheirInformer[T Object](settings Settings[T]) Informer[T] {
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	if settings.ByNamespace != nil {
		indexers[cache.NamespaceIndex] = untyped(settings.ByNamespace)
	}
	return theirInformer[T]{cache.NewSharedIndexInformer(settings.Source, settings.Example, 0, indexers)}
}

func (i theirInformer[T]) Handle(handler Handler[T], _ Delivery) error {
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
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
	})
	return err
}

func (i theirInformer[T]) Run(ctx context.Context) { i.RunWithContext(ctx) }

func (i theirInformer[T]) Synced() <-chan struct{} { return i.HasSyncedChecker().Done() }

func (i theirInformer[T]) Get(key string) T {
	obj, _, _ := i.GetStore().GetByKey(key)
	object, _ := obj.(T)
	return object
}

func (i theirInformer[T]) Len() int { return len(i.GetStore().ListKeys()) }
