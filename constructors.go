package cache

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// NewSharedInformer is for code written for client-go; new code uses NewTypedInformer.
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object, resyncPeriod time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, resyncPeriod, nil)
}

// NewSharedIndexInformer is for code written for client-go; new code uses NewTypedInformer.
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object, resyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	options := SharedIndexInformerOptions{ResyncPeriod: resyncPeriod, Indexers: indexers}
	return NewSharedIndexInformerWithOptions(lw, exampleObject, options)
}

// NewSharedIndexInformerWithOptions is for code written for client-go; new code uses
// NewTypedInformer. A nil exampleObject accepts all types. It starts nothing, and panics for
// negative or contradictory options.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
	return newSharedIndexInformer(ToListerWatcherWithContext(lw), exampleObject, options)
}

// NewInformerWithOptions is for code written for client-go; new code uses NewTypedInformer. It
// makes a store, which is an Indexer, and the controller that mirrors a source into it and notifies
// one handler. It starts nothing.
//
// The handler's backlog is bounded, and the store may be ahead of its events. The controller is a
// *Mirror; its HasSynced is the handler's.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	mustHave(!isNilPointer(options.ListerWatcher), "InformerOptions.ListerWatcher is nil")
	mustHave(options.Handler == nil || !isNilPointer(options.Handler), "InformerOptions.Handler is a nil pointer")
	mustHave(options.ResyncPeriod >= 0, "InformerOptions.ResyncPeriod is negative: use 0 for no resync")
	mustHave(options.HandlerOptions.ResyncPeriod == nil, "InformerOptions.HandlerOptions.ResyncPeriod: set ResyncPeriod")
	options.ReflectorOptions.Logger = cmp.Or(options.Logger, options.ReflectorOptions.Logger)
	options.ReflectorOptions.MinWatchTimeout = cmp.Or(options.MinWatchTimeout, options.ReflectorOptions.MinWatchTimeout)
	source := ToListerWatcherWithContext(options.ListerWatcher)
	inf := newSharedIndexInformer(source, options.ObjectType, SharedIndexInformerOptions{
		Indexers: options.Indexers, Identifier: options.Identifier, InformerMetricsProvider: options.InformerMetricsProvider,
		KeyFunction: options.KeyFunction, Transform: options.Transform, RecreateAsUpdate: options.RecreateAsUpdate,
		DetectMutations: options.DetectMutations, ReflectorOptions: options.ReflectorOptions, Handlers: options.HandlerOptions,
	})
	return inf.store, inf.mirror(options.Handler, options.ResyncPeriod, nil) // the informer's period has a minimum
}

// NewInformer is for code written for client-go.
//
// Deprecated: use NewTypedInformer.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewIndexerInformer(lw, objType, resyncPeriod, h, nil)
}

// NewIndexerInformer is for code written for client-go.
//
// Deprecated: use NewTypedInformer.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	store, ctlr := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers,
	})
	return store.(Indexer), ctlr
}
