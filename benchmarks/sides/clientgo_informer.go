package sides

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache/benchmarks/local"
)

// theirInformer is client-go's shared informer with the index that factories give it.
type theirInformer struct{ cache.SharedIndexInformer }

func newTheirInformer(source *local.Source) Informer {
	return theirInformer{cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
}

func (i theirInformer) Handle(handler Handler, _ Delivery) error {
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
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
	})
	return err
}

func (i theirInformer) Run(ctx context.Context) { i.RunWithContext(ctx) }

func (i theirInformer) Synced() <-chan struct{} { return i.HasSyncedChecker().Done() }

func (i theirInformer) Get(key string) *corev1.ConfigMap {
	obj, _, _ := i.GetStore().GetByKey(key)
	object, _ := obj.(*corev1.ConfigMap)
	return object
}
