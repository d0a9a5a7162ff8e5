package sides

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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

// Object is what an informer's objects have: they are pointers to API types.
type Object interface {
	comparable
	runtime.Object
	metav1.Object
}

// Handler receives changes. A field may be nil.
type Handler[T Object] struct {
	Add    func(object T)
	Update func(object T)
}

// Informer is one informer, with the settings that a program gets which sets nothing.
type Informer[T Object] interface {
	// Handle adds a handler.
	Handle(handler Handler[T], delivery Delivery) error
	// Run runs the informer until the context ends, and waits for its handlers.
	Run(ctx context.Context)
	// Synced is closed when the first list is in the store.
	Synced() <-chan struct{}
	// Get returns an object of the store, nil if it is not there.
	Get(key string) T
}

// Settings say how an informer is made.
type Settings[T Object] struct {
	// Source has what the informer mirrors.
	Source local.ListerWatcher
	// Example is an object of the type.
	Example T
	// ByNamespace is the program's own function for the index by namespace. Without it
	// there is that index too, with the library's function.
	ByNamespace func(T) ([]string, error)
}

// NewInformer makes a side's informer.
func NewInformer[T Object](side Side, form Form, settings Settings[T]) (Informer[T], error) {
	switch {
	case side == ClientGo && form == StoreAndHandler:
		return newTheirController(settings), nil
	case side == ClientGo:
		return newTheirInformer(settings), nil
	case side == Ours && form == StoreAndHandler:
		return newOurController(settings), nil
	case side == Ours && form == TypedInformer:
		return newTypedInformer(settings), nil
	case side == Ours && form == SharedInformer:
		return newSharedInformer(settings), nil
	case side == Ours:
		return nil, fmt.Errorf("%q is none of %q, %q and %q", form, TypedInformer, SharedInformer, StoreAndHandler)
	}
	return nil, fmt.Errorf("%q is neither %q nor %q", side, ClientGo, Ours)
}

// untyped is an index function as untyped stores have it.
func untyped[T Object](of func(T) ([]string, error)) func(obj any) ([]string, error) {
	return func(obj any) ([]string, error) {
		object, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("%T is not indexed", obj)
		}
		return of(object)
	}
}
