package sides

import (
	"context"
	"errors"
	"fmt"

	"github.com/watchmirror/cache/benchmarks/local"
)

// Keys says which keys a store has.
type Keys string

// The keys.
const (
	// DerivedKeys are namespace/name, by MetaNamespaceKeyFunc: a store could make them
	// again of what the object says of itself.
	DerivedKeys Keys = ""
	// KeptKeys are by a function of the program's own, and cannot be derived from the object.
	KeptKeys Keys = "kept keys"
)

// Key is where object i is.
func (k Keys) Key(i int) string {
	if k == KeptKeys {
		return keptKey(local.SmallKey(i))
	}
	return local.SmallKey(i)
}

// keptKey is as long as the key that it is made of, and one byte.
func keptKey(key string) string { return key + "#" }

// keptKeyOf is the program's own key function.
func keptKeyOf(obj any) (string, error) {
	object, ok := obj.(*local.Small)
	if !ok {
		return "", fmt.Errorf("%T has no key", obj)
	}
	return keptKey(object.Namespace + "/" + object.Name), nil
}

// Store is one store of small objects. Floor's may be used by one goroutine only.
type Store interface {
	// Update stores an object.
	Update(object *local.Small) error
	// Get says whether there is an object.
	Get(key string) bool
	// ByIndex is how many objects an index finds, as the slice of them says.
	ByIndex(index, value string) (int, error)
	// List is how many objects there are, as the slice of them says.
	List() int
	// Iterate looks at every object, without a copy of all where the store can do that.
	Iterate() int
	// ListKeys is how many keys there are, as the slice of them says.
	ListKeys() int
	// Replace makes the list the content, and may keep the slice.
	Replace(list []any) error
	// Close ends what belongs to the store.
	Close()
}

// errReadOnly is what the typed form says to a writer: its informer writes.
var errReadOnly = errors.New("a typed lister is only read")

// NewStore makes a side's empty store with the first so many of local.Indexes. The typed
// form is a lister: it has as many objects as are given from the start, and always the
// index by namespace.
func NewStore(ctx context.Context, side Side, form Form, keys Keys, indexes, objects int) (Store, error) {
	if indexes < 0 || indexes > len(local.Indexes) {
		return nil, fmt.Errorf("%d indexes", indexes)
	}
	some := local.Indexes[:indexes]
	switch {
	case side == ClientGo:
		return newTheirStore(keys, some), nil
	case side == Ours && form == SharedInformer:
		return newOurStore(keys, some), nil
	case side == Ours && form == TypedInformer:
		return newTypedStore(ctx, keys, some, objects)
	case side == Floor:
		return newBareStore(keys, some), nil
	}
	return nil, fmt.Errorf("%q has no store %q", side, form)
}
