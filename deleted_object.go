package cache

import (
	"reflect"
	"strings"
)

// DeletedObject tells a typed handler what was deleted. It always has the key, and the
// last state that was known, if any was: Last returns it, and Exact says whether it is
// the final one. With GetName and GetNamespace it can be given to klog.KObj.
//
// Who makes one, in a test of a handler, sets OptionalObj for a deletion that was seen,
// and FinalStateUnknown as well for one that was not.
type DeletedObject[T Object] struct {
	// OptionalObj is the last known state. It is T's zero value if there is none; ask
	// Last. If FinalStateUnknown is set, the object may have changed after it.
	OptionalObj T
	// FinalStateUnknown is nil if the deletion was seen, with the final state.
	// Otherwise it is the tombstone: its Key is the object's, and its Obj that of
	// OptionalObj, or nil.
	FinalStateUnknown *DeletedFinalStateUnknown

	// key is what the informer knows the object by. It need not be what the metadata
	// say: there may be a key function. Empty if nobody told.
	key string
}

// Exact says whether OptionalObj is the object's final state: the deletion was seen, and
// no relist noticed it later.
func (d DeletedObject[T]) Exact() bool {
	_, known := d.Last()
	return known && d.FinalStateUnknown == nil
}

// Last returns the last known state of the object, which is the final one if Exact is
// true. ok is false if none is known.
func (d DeletedObject[T]) Last() (obj T, ok bool) {
	// T may be an interface, whose values cannot always be compared with ==.
	value := reflect.ValueOf(d.OptionalObj)
	return d.OptionalObj, value.IsValid() && !value.IsZero()
}

// GetKey returns the key under which the object was stored. Where that is not known, in
// a DeletedObject made by hand, it is the one that MetaNamespaceKeyFunc would make.
func (d DeletedObject[T]) GetKey() string {
	switch {
	case d.key != "":
		return d.key
	case d.FinalStateUnknown != nil:
		return d.FinalStateUnknown.Key
	}
	return d.GetObjectName().String()
}

// GetObjectName returns the object's namespace and name: as the last known state has
// them or, without one, as they can be read from the key, up to the first slash and
// after it.
func (d DeletedObject[T]) GetObjectName() ObjectName {
	if last, known := d.Last(); known {
		return ObjectName{Namespace: last.GetNamespace(), Name: last.GetName()}
	}
	key := d.key
	if key == "" && d.FinalStateUnknown != nil {
		key = d.FinalStateUnknown.Key
	}
	if namespace, name, namespaced := strings.Cut(key, "/"); namespaced {
		return ObjectName{Namespace: namespace, Name: name}
	}
	return ObjectName{Name: key}
}

// GetName returns the name without the namespace.
func (d DeletedObject[T]) GetName() string { return d.GetObjectName().Name }

// GetNamespace returns the namespace; empty for an object without one.
func (d DeletedObject[T]) GetNamespace() string { return d.GetObjectName().Namespace }
