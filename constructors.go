// The constructors of client-go, for code written for it. How does each of their arguments become
// an option? New code uses NewTypedInformer.

package cache

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// NewSharedInformer is for code written for client-go; new code uses NewTypedInformer.
func NewSharedInformer(
	lw ListerWatcher, exampleObject runtime.Object, resyncPeriod time.Duration,
) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, resyncPeriod, nil)
}

// NewSharedIndexInformer is for code written for client-go; new code uses NewTypedInformer.
func NewSharedIndexInformer(
	lw ListerWatcher,
	exampleObject runtime.Object,
	resyncPeriod time.Duration,
	indexers Indexers,
) SharedIndexInformer {
	options := SharedIndexInformerOptions{ResyncPeriod: resyncPeriod, Indexers: indexers}
	return NewSharedIndexInformerWithOptions(lw, exampleObject, options)
}

// NewSharedIndexInformerWithOptions is for code written for client-go; new code uses
// NewTypedInformer. A nil exampleObject accepts all types. It starts nothing, and panics for
// negative or contradictory options.
func NewSharedIndexInformerWithOptions(
	lw ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions,
) SharedIndexInformer {
	return newSharedIndexInformer(ToListerWatcherWithContext(lw), exampleObject, options)
}

// NewInformerWithOptions is for code written for client-go; new code uses NewTypedInformer. It
// makes a store, which is an Indexer, and the controller that mirrors a source into it and notifies
// one handler. It starts nothing.
//
// The handler's backlog is bounded, and the store may be ahead of its events. The controller is a
// *Mirror; its HasSynced is the handler's.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	options.validate()
	reflector := options.ReflectorOptions
	reflector.Logger = cmp.Or(options.Logger, reflector.Logger)
	reflector.MinWatchTimeout = cmp.Or(options.MinWatchTimeout, reflector.MinWatchTimeout)
	source := ToListerWatcherWithContext(options.ListerWatcher)
	inf := newSharedIndexInformer(source, options.ObjectType, SharedIndexInformerOptions{
		Indexers:                options.Indexers,
		Identifier:              options.Identifier,
		InformerMetricsProvider: options.InformerMetricsProvider,
		KeyFunction:             options.KeyFunction,
		Transform:               options.Transform,
		Handlers:                options.HandlerOptions,
		RecreateAsUpdate:        options.RecreateAsUpdate,
		DetectMutations:         options.DetectMutations,
		ReflectorOptions:        reflector,
	})
	// The resync period is the handler's alone: that of an informer has a minimum.
	return inf.store, inf.mirror(options.Handler, options.ResyncPeriod, nil)
}

func (o *InformerOptions) validate() {
	mustHave(!isNilPointer(o.ListerWatcher), "InformerOptions.ListerWatcher is nil")
	mustHave(o.Handler == nil || !isNilPointer(o.Handler),
		"InformerOptions.Handler is a nil pointer")
	mustHave(o.ResyncPeriod >= 0,
		"InformerOptions.ResyncPeriod is negative: use 0 for no resync")
	mustHave(o.HandlerOptions.ResyncPeriod == nil,
		"InformerOptions.HandlerOptions.ResyncPeriod: set ResyncPeriod")
}

// NewInformer is for code written for client-go.
//
// Deprecated: use NewTypedInformer.
func NewInformer(
	lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler,
) (Store, Controller) {
	return NewIndexerInformer(lw, objType, resyncPeriod, h, nil)
}

// NewIndexerInformer is for code written for client-go.
//
// Deprecated: use NewTypedInformer.
func NewIndexerInformer(
	lw ListerWatcher,
	objType runtime.Object,
	resyncPeriod time.Duration,
	h ResourceEventHandler,
	indexers Indexers,
) (Indexer, Controller) {
	store, controller := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw,
		ObjectType:    objType,
		ResyncPeriod:  resyncPeriod,
		Handler:       h,
		Indexers:      indexers,
	})
	return store.(Indexer), controller
}
