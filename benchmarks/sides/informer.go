package sides

import (
	"context"
	"fmt"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/local"
)

// Form is which informer a side uses. client-go has one, and a controller; what there is of ours is
// compared with that.
type Form string

// The forms of an informer.
const (
	TypedInformer  Form = "Informer[T]"
	SharedInformer Form = "SharedIndexInformer"
	// StoreAndHandler is a controller with a store and one handler, and no queue of the
	// program's: cache.New, and client-go's NewInformerWithOptions.
	StoreAndHandler Form = "Store and Handler"
)

// Handler receives objects that are added and updated.
type Handler struct{ Add, Update func(object *local.Object) }

func (h Handler) typed() ourcache.TypedResourceEventHandlerFuncs[*local.Object] {
	return ourcache.TypedResourceEventHandlerFuncs[*local.Object]{
		AddFunc:    h.Add,
		UpdateFunc: func(_, object *local.Object) { h.Update(object) },
	}
}

// untyped is a handler of client-go's informers and of ours.
type untyped struct{ handler Handler }

func (u untyped) OnAdd(obj any, _ bool) { u.handler.Add(obj.(*local.Object)) }

func (u untyped) OnUpdate(_, obj any) { u.handler.Update(obj.(*local.Object)) }

func (untyped) OnDelete(any) {}

// Informer is an informer with an index by namespace, and otherwise with the settings of a program
// that sets nothing.
type Informer struct {
	// Run runs the informer until the context ends, and waits for its handlers.
	Run func(ctx context.Context)
	// Get returns an object of the store, nil if it is not there.
	Get func(key string) *local.Object
}

// NewInformer makes a side's informer of a source. The typed form has an index by namespace of its
// own, the others have one with a function of the program's. A controller has one handler, which is
// called in order. delivery is for handlers of our informers: client-go has one way, which is compared
// with each.
func NewInformer(
	side Side, form Form, source *local.Source, delivery ourcache.Delivery, handlers ...Handler,
) (*Informer, error) {
	options := ourcache.HandlerOptions{Delivery: delivery}
	isController := form == StoreAndHandler
	switch {
	case isController && len(handlers) != 1:
		return nil, fmt.Errorf("a controller has one handler, not %d", len(handlers))
	case isController && side == ClientGo:
		return newTheirController(source, handlers[0]), nil
	case isController && side == Ours:
		return newOurController(source, handlers[0]), nil
	case side == ClientGo:
		return newTheirInformer(source, handlers)
	case side == Ours && form == TypedInformer:
		return newTypedInformer(source, options, handlers)
	case side == Ours && form == SharedInformer:
		return newSharedInformer(source, options, handlers)
	}
	return nil, fmt.Errorf("%q has no informer of the form %q", side, form)
}

func newTheirInformer(source *local.Source, handlers []Handler) (*Informer, error) {
	informer := theircache.NewSharedIndexInformer(source, &local.Object{}, 0, theirIndexers())
	for _, handler := range handlers {
		if _, err := informer.AddEventHandler(untyped{handler}); err != nil {
			return nil, err
		}
	}
	return &Informer{Run: informer.RunWithContext, Get: getter(informer.GetStore())}, nil
}

func newSharedInformer(
	source *local.Source, options ourcache.HandlerOptions, handlers []Handler,
) (*Informer, error) {
	informer := ourcache.NewSharedIndexInformer(source, &local.Object{}, 0, ourIndexers())
	for _, handler := range handlers {
		if _, err := informer.AddEventHandlerWithOptions(untyped{handler}, options); err != nil {
			return nil, err
		}
	}
	return &Informer{Run: informer.RunWithContext, Get: getter(informer.GetStore())}, nil
}

func newTypedInformer(
	source *local.Source, options ourcache.HandlerOptions, handlers []Handler,
) (*Informer, error) {
	informer := ourcache.NewTypedInformer[*local.Object](source)
	for _, handler := range handlers {
		if _, err := informer.AddHandler(handler.typed(), options); err != nil {
			return nil, err
		}
	}
	run := func(ctx context.Context) {
		if err := informer.Run(ctx); err != nil {
			panic(err) // it has been run before
		}
	}
	get := func(key string) *local.Object {
		object, _ := informer.Lookup(key)
		return object
	}
	return &Informer{Run: run, Get: get}, nil
}

// newTheirController is NewInformerWithOptions, of which NewIndexerInformer is the older form.
func newTheirController(source *local.Source, handler Handler) *Informer {
	store, controller := theircache.NewInformerWithOptions(theircache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &local.Object{},
		Indexers:      theirIndexers(),
		Handler:       untyped{handler},
	})
	return &Informer{Run: controller.RunWithContext, Get: getter(store)}
}

// newOurController is New with a Store and a Handler.
func newOurController(source *local.Source, handler Handler) *Informer {
	store := ourcache.NewIndexer(ourcache.MetaNamespaceKeyFunc, ourIndexers())
	controller := ourcache.New(&ourcache.Config{
		ListerWatcher: source,
		ObjectType:    &local.Object{},
		Store:         store,
		Handler:       untyped{handler},
	})
	return &Informer{Run: controller.RunWithContext, Get: getter(store)}
}

func theirIndexers() theircache.Indexers {
	return theircache.Indexers{theircache.NamespaceIndex: byNamespace}
}

func ourIndexers() ourcache.Indexers {
	return ourcache.Indexers{ourcache.NamespaceIndex: byNamespace}
}

// byNamespace is an index function of a program. It makes one allocation, the slice.
func byNamespace(obj any) ([]string, error) {
	return []string{obj.(*local.Object).Namespace}, nil
}

func getter(store interface {
	GetByKey(key string) (item any, exists bool, err error)
}) func(key string) *local.Object {
	return func(key string) *local.Object {
		obj, _, _ := store.GetByKey(key)
		object, _ := obj.(*local.Object)
		return object
	}
}
