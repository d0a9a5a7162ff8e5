package sides

import (
	"context"
	"errors"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
)

// controlled is a controller that fills an indexer and calls one handler, of either side.
type controlled[T Object] struct {
	// make makes the controller for the handler.
	make func(Handler[T]) controllerParts
	controllerParts
}

type controllerParts struct {
	controller interface{ RunWithContext(ctx context.Context) }
	synced     <-chan struct{}
	store      interface {
		GetByKey(key string) (item any, exists bool, err error)
	}
}

var errOneHandler = errors.New("a controller has one handler, which is called in order")

func (c *controlled[T]) Handle(handler Handler[T], delivery Delivery) error {
	if c.controller != nil || delivery != Ordered {
		return errOneHandler
	}
	c.controllerParts = c.make(handler)
	return nil
}

func (c *controlled[T]) Run(ctx context.Context) { c.controller.RunWithContext(ctx) }

func (c *controlled[T]) Synced() <-chan struct{} { return c.synced }

func (c *controlled[T]) Get(key string) T {
	obj, _, _ := c.store.GetByKey(key)
	object, _ := obj.(T)
	return object
}

// newTheirController is NewInformerWithOptions, of which NewIndexerInformer is the older form.
func newTheirController[T Object](settings Settings[T]) Informer[T] {
	return &controlled[T]{make: func(handler Handler[T]) controllerParts {
		indexers := theircache.Indexers{theircache.NamespaceIndex: settings.byNamespace(theircache.MetaNamespaceIndexFunc)}
		store, controller := theircache.NewInformerWithOptions(theircache.InformerOptions{
			ListerWatcher: settings.Source, ObjectType: settings.Example, Indexers: indexers,
			Handler: theircache.ResourceEventHandlerFuncs{AddFunc: handler.add, UpdateFunc: handler.update},
		})
		return controllerParts{controller, controller.HasSyncedChecker().Done(), store}
	}}
}

// newOurController is New with a Store and a Handler.
func newOurController[T Object](settings Settings[T]) Informer[T] {
	return &controlled[T]{make: func(handler Handler[T]) controllerParts {
		indexer := ourcache.NewIndexer(ourcache.MetaNamespaceKeyFunc,
			ourcache.Indexers{ourcache.NamespaceIndex: settings.byNamespace(ourcache.MetaNamespaceIndexFunc)})
		controller := ourcache.New(&ourcache.Config{
			ListerWatcher: settings.Source, ObjectType: settings.Example, Store: indexer,
			Handler: ourcache.ResourceEventHandlerFuncs{AddFunc: handler.add, UpdateFunc: handler.update},
		})
		return controllerParts{controller, controller.HasSyncedChecker().Done(), indexer}
	}}
}

// byNamespace is the function of the index by namespace.
func (s Settings[T]) byNamespace(library func(obj any) ([]string, error)) func(obj any) ([]string, error) {
	if s.ByNamespace == nil {
		return library
	}
	return untyped(s.ByNamespace)
}

// add and update are the handler as untyped ones are.
func (h Handler[T]) add(obj any) {
	if h.Add != nil {
		h.Add(obj.(T))
	}
}

func (h Handler[T]) update(_, obj any) {
	if h.Update != nil {
		h.Update(obj.(T))
	}
}
