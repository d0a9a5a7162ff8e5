package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// ErrOwnHandler is ErrHandlerRunning.
//
// Deprecated: use ErrHandlerRunning.
var ErrOwnHandler = ErrHandlerRunning

// NewInformer is NewInformerWithOptions with a source, an example of what it sends, a
// resync period (0 is never) and a handler.
//
// Deprecated: use NewInformerFor, which has types, or NewInformerWithOptions.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h,
	})
}

// NewIndexerInformer is NewInformer with indexers.
//
// Deprecated: use NewInformerFor, which has types, or NewInformerWithOptions.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	store, ctlr := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers,
	})
	return store.(Indexer), ctlr
}
