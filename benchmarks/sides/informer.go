package sides

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/watchmirror/cache/benchmarks/local"
)

// Form is which informer a side uses. client-go has one; what there is of ours is
// compared with that.
type Form string

// The forms of an informer.
const (
	TypedInformer  Form = "Informer[T]"
	SharedInformer Form = "SharedIndexInformer"
)

// Delivery is how handlers of ours are told of changes. client-go has one way, which is
// compared with each.
type Delivery string

// The deliveries. The empty one is the default.
const (
	Ordered   Delivery = ""
	Coalesced Delivery = "coalesced"
)

// Handler is told of changes. A field may be nil.
type Handler struct {
	Add    func(object *corev1.ConfigMap)
	Update func(object *corev1.ConfigMap)
}

// Informer is one informer, with the settings that a program gets which sets nothing.
type Informer interface {
	// Handle adds a handler.
	Handle(handler Handler, delivery Delivery) error
	// Run runs the informer until the context ends, and waits for its handlers.
	Run(ctx context.Context)
	// Synced is closed when the first list is in the store.
	Synced() <-chan struct{}
	// Get returns an object of the store, nil if it is not there.
	Get(key string) *corev1.ConfigMap
}

// NewInformer makes a side's informer of a source.
func (s Side) NewInformer(form Form, source *local.Source) (Informer, error) {
	switch {
	case s == ClientGo:
		return newTheirInformer(source), nil
	case s == Ours && form == TypedInformer:
		return newTypedInformer(source), nil
	case s == Ours && form == SharedInformer:
		return newSharedInformer(source), nil
	case s == Ours:
		return nil, fmt.Errorf("%q is neither %q nor %q", form, TypedInformer, SharedInformer)
	}
	return nil, fmt.Errorf("%q is neither %q nor %q", s, ClientGo, Ours)
}
