package sides

import (
	"context"
	"errors"
	"fmt"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/local"
)

// Form is which informer a side uses. client-go has one of each; what there is of
// ours is compared with that.
type Form string

// The forms of an informer.
const (
	TypedInformer  Form = "Informer[T]"
	SharedInformer Form = "SharedIndexInformer"
	// StoreAndHandler is a controller with a store and one handler, and no queue of the
	// program's: cache.New, and client-go's NewInformerWithOptions.
	StoreAndHandler Form = "Store and Handler"
)

// Delivery is how changes are delivered to handlers of ours. client-go has one way, which is
// compared with each.
type Delivery string

// The deliveries. The empty one is the default.
const (
	Ordered   Delivery = ""
	Coalesced Delivery = "coalesced"
)

// options are those of a handler of ours.
func (d Delivery) options() ourcache.HandlerOptions {
	if d == Coalesced {
		return ourcache.HandlerOptions{Delivery: ourcache.Coalesced}
	}
	return ourcache.HandlerOptions{}
}

// Handler receives changes. A field may be nil.
type Handler struct {
	Add    func(object *local.Object)
	Update func(object *local.Object)
}

func (h Handler) addTyped(object *local.Object) {
	if h.Add != nil {
		h.Add(object)
	}
}

func (h Handler) updateTyped(_, object *local.Object) {
	if h.Update != nil {
		h.Update(object)
	}
}

func (h Handler) add(obj any) { h.addTyped(obj.(*local.Object)) }

func (h Handler) update(_, obj any) { h.updateTyped(nil, obj.(*local.Object)) }

func (h Handler) theirs() theircache.ResourceEventHandlerFuncs {
	return theircache.ResourceEventHandlerFuncs{AddFunc: h.add, UpdateFunc: h.update}
}

func (h Handler) ours() ourcache.ResourceEventHandlerFuncs {
	return ourcache.ResourceEventHandlerFuncs{AddFunc: h.add, UpdateFunc: h.update}
}

// Informer is one informer with an index by namespace, and otherwise with the settings that a
// program gets which sets nothing.
type Informer struct {
	// Handle adds a handler.
	Handle func(handler Handler, delivery Delivery) error
	// Run runs the informer until the context ends, and waits for its handlers.
	Run func(ctx context.Context)
	// Get returns an object of the store, nil if it is not there.
	Get func(key string) *local.Object
}

// NewInformer makes a side's informer of a source. The typed form has an index by namespace
// of its own, the others have one with a function of the program's.
func NewInformer(side Side, form Form, source *local.Source) (*Informer, error) {
	switch {
	case side == ClientGo && form == StoreAndHandler:
		return newTheirController(source), nil
	case side == ClientGo:
		return newTheirInformer(source), nil
	case side == Ours && form == StoreAndHandler:
		return newOurController(source), nil
	case side == Ours && form == TypedInformer:
		return newTypedInformer(source), nil
	case side == Ours && form == SharedInformer:
		return newSharedInformer(source), nil
	}
	return nil, fmt.Errorf("%q has no informer of the form %q", side, form)
}

func newTheirInformer(source *local.Source) *Informer {
	informer := theircache.NewSharedIndexInformer(source, &local.Object{}, 0, theirIndexers())
	return &Informer{
		Handle: func(handler Handler, _ Delivery) error {
			_, err := informer.AddEventHandler(handler.theirs())
			return err
		},
		Run: informer.RunWithContext,
		Get: getter(informer.GetStore()),
	}
}

func newSharedInformer(source *local.Source) *Informer {
	informer := ourcache.NewSharedIndexInformer(source, &local.Object{}, 0, ourIndexers())
	return &Informer{
		Handle: func(handler Handler, delivery Delivery) error {
			_, err := informer.AddEventHandlerWithOptions(handler.ours(), delivery.options())
			return err
		},
		Run: informer.RunWithContext,
		Get: getter(informer.GetStore()),
	}
}

func newTypedInformer(source *local.Source) *Informer {
	informer := ourcache.NewTypedInformer[*local.Object](source)
	return &Informer{
		Handle: func(handler Handler, delivery Delivery) error {
			funcs := ourcache.TypedResourceEventHandlerFuncs[*local.Object]{
				AddFunc:    handler.addTyped,
				UpdateFunc: handler.updateTyped,
			}
			_, err := informer.AddHandler(funcs, delivery.options())
			return err
		},
		Run: func(ctx context.Context) {
			if err := informer.Run(ctx); err != nil {
				panic(err) // it has been run before
			}
		},
		Get: func(key string) *local.Object {
			object, _ := informer.Lookup(key)
			return object
		},
	}
}

// ErrOneHandler says that a controller has a handler already.
var ErrOneHandler = errors.New("a controller has one handler, which is called in order")

// controlled makes an informer of a controller that fills a store and calls one handler.
func controlled(start func(handler Handler) (run func(context.Context), in store)) *Informer {
	i := &Informer{}
	i.Handle = func(handler Handler, delivery Delivery) error {
		if i.Run != nil || delivery != Ordered {
			return ErrOneHandler
		}
		run, in := start(handler)
		i.Run = run
		i.Get = getter(in)
		return nil
	}
	return i
}

// newTheirController is NewInformerWithOptions, of which NewIndexerInformer is the older form.
func newTheirController(source *local.Source) *Informer {
	return controlled(func(handler Handler) (func(context.Context), store) {
		in, controller := theircache.NewInformerWithOptions(theircache.InformerOptions{
			ListerWatcher: source,
			ObjectType:    &local.Object{},
			Indexers:      theirIndexers(),
			Handler:       handler.theirs(),
		})
		return controller.RunWithContext, in
	})
}

// newOurController is New with a Store and a Handler.
func newOurController(source *local.Source) *Informer {
	return controlled(func(handler Handler) (func(context.Context), store) {
		in := ourcache.NewIndexer(ourcache.MetaNamespaceKeyFunc, ourIndexers())
		controller := ourcache.New(&ourcache.Config{
			ListerWatcher: source,
			ObjectType:    &local.Object{},
			Store:         in,
			Handler:       handler.ours(),
		})
		return controller.RunWithContext, in
	})
}

func theirIndexers() theircache.Indexers {
	return theircache.Indexers{theircache.NamespaceIndex: byNamespace}
}

func ourIndexers() ourcache.Indexers {
	return ourcache.Indexers{ourcache.NamespaceIndex: byNamespace}
}

// byNamespace is an index function of a program.
func byNamespace(obj any) ([]string, error) { return local.ByNamespace(obj.(*local.Object)) }

type store interface {
	GetByKey(key string) (item any, exists bool, err error)
}

func getter(in store) func(key string) *local.Object {
	return func(key string) *local.Object {
		obj, _, _ := in.GetByKey(key)
		object, _ := obj.(*local.Object)
		return object
	}
}
