package cache

import "fmt"

// TypedSharedIndexInformer is a SharedIndexInformer with what it takes to do without
// casts. It is client-go's; Informer does more.
type TypedSharedIndexInformer[T Object] interface {
	SharedIndexInformer
	// AddTypedEventHandler is AddEventHandlerWithOptions. There may be one
	// HandlerOptions; more are an error.
	AddTypedEventHandler(handler TypedResourceEventHandler[T], options ...HandlerOptions) (ResourceEventHandlerRegistration, error)
	// AddTypedIndexers is AddIndexers. A function fails for an object that is not a T.
	AddTypedIndexers(indexers TypedIndexers[T]) error
	// GetTypedIndexer is GetIndexer.
	GetTypedIndexer() TypedIndexer[T]
}

// NewTypedSharedIndexInformer makes informer a TypedSharedIndexInformer of the same
// store and handlers. Its objects should be T: handlers are not told of others, which
// is logged.
func NewTypedSharedIndexInformer[T Object](informer SharedIndexInformer) TypedSharedIndexInformer[T] {
	mustHave(!isNilPointer(informer), "NewTypedSharedIndexInformer: the informer is nil")
	typed := typedSharedIndexInformer[T]{informer}
	if own, ok := informer.(ownInformer); ok {
		return ownTypedInformer[T]{typed, own}
	}
	if reporter, reports := informer.(StatusReporter); reports {
		return reportingTypedInformer[T]{typed, reporter}
	}
	return typed
}

type typedSharedIndexInformer[T Object] struct{ SharedIndexInformer }

func (t typedSharedIndexInformer[T]) AddTypedEventHandler(handler TypedResourceEventHandler[T], options ...HandlerOptions) (ResourceEventHandlerRegistration, error) {
	return addTypedHandler(t.SharedIndexInformer, handler, options)
}

func (t typedSharedIndexInformer[T]) AddTypedIndexers(indexers TypedIndexers[T]) error {
	return t.AddIndexers(TypedIndexersToIndexers(indexers))
}

func (t typedSharedIndexInformer[T]) GetTypedIndexer() TypedIndexer[T] {
	return newTypedIndexer[T](t.GetIndexer())
}

// ownInformer is what an informer of this package is besides.
type ownInformer interface {
	StatusReporter
	Snapshotter
}

// ownTypedInformer is that of an informer of this package.
type ownTypedInformer[T Object] struct {
	typedSharedIndexInformer[T]
	ownInformer
}

// reportingTypedInformer is that of an informer that is a StatusReporter.
type reportingTypedInformer[T Object] struct {
	typedSharedIndexInformer[T]
	StatusReporter
}

// addTypedHandler adds a handler to an informer, with the one HandlerOptions there may be.
func addTypedHandler[T Object](informer SharedInformer, handler TypedResourceEventHandler[T], options []HandlerOptions) (ResourceEventHandlerRegistration, error) {
	if len(options) > 1 {
		return nil, fmt.Errorf("no handler was added: there are %d HandlerOptions, at most one is used", len(options))
	}
	var only HandlerOptions
	for _, only = range options {
	}
	if isNilPointer(handler) {
		return informer.AddEventHandlerWithOptions(nil, only)
	}
	return informer.AddEventHandlerWithOptions(typedHandler[T]{handler}, only)
}
