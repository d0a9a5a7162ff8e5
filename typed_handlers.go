package cache

import (
	"fmt"
	"reflect"

	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/table"
)

// Object is what the types of a typed informer's objects have: *v1.Pod is one, and
// every other pointer to a struct with an ObjectMeta.
type Object interface {
	comparable
	// GetName and GetNamespace are those of the object's metadata; the namespace is empty
	// for an object that has none.
	GetName() string
	GetNamespace() string
}

// TypedResourceEventHandler is a ResourceEventHandler for objects of one type. What is
// said there holds here: calls come one at a time, and objects must not be changed.
type TypedResourceEventHandler[T Object] interface {
	// OnAdd is told of an object that was not there before. isInInitialList is
	// true for those of the first list.
	OnAdd(obj T, isInInitialList bool)
	// OnUpdate is told of a newer state. Several changes may have become one;
	// with a resync both are the same object.
	OnUpdate(oldObj, newObj T)
	// OnDelete is told of an object that is gone: its key, the last known state and
	// whether that is the final one.
	OnDelete(obj DeletedObject[T])
}

// TypedResourceEventHandlerFuncs makes a TypedResourceEventHandler of the functions
// that are wanted; the others may be nil.
type TypedResourceEventHandlerFuncs[T Object] struct {
	// What is said of the methods of TypedResourceEventHandler holds for each.
	AddFunc    func(obj T)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
}

// OnAdd calls AddFunc, if there is one.
func (f TypedResourceEventHandlerFuncs[T]) OnAdd(obj T, _ bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj)
	}
}

// OnUpdate calls UpdateFunc, if there is one.
func (f TypedResourceEventHandlerFuncs[T]) OnUpdate(oldObj, newObj T) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc, if there is one.
func (f TypedResourceEventHandlerFuncs[T]) OnDelete(obj DeletedObject[T]) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}

// TypedResourceEventHandlerDetailedFuncs is TypedResourceEventHandlerFuncs with an
// AddFunc that is also told whether the object is of the first list.
type TypedResourceEventHandlerDetailedFuncs[T Object] struct {
	AddFunc    func(obj T, isInInitialList bool)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
}

// OnAdd calls AddFunc, if there is one.
func (f TypedResourceEventHandlerDetailedFuncs[T]) OnAdd(obj T, isInInitialList bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc, if there is one.
func (f TypedResourceEventHandlerDetailedFuncs[T]) OnUpdate(oldObj, newObj T) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc, if there is one.
func (f TypedResourceEventHandlerDetailedFuncs[T]) OnDelete(obj DeletedObject[T]) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}

// TypedFilteringResourceEventHandler is a FilteringResourceEventHandler for objects of
// one type.
type TypedFilteringResourceEventHandler[T Object] struct {
	// FilterFunc must answer the same for the same object, and must not change it. If
	// it is nil, all pass.
	FilterFunc func(obj T) bool
	// Handler is told. If it is nil, nobody is, and FilterFunc is not called.
	Handler TypedResourceEventHandler[T]
}

// OnAdd tells of an object that passes.
func (h TypedFilteringResourceEventHandler[T]) OnAdd(obj T, isInInitialList bool) {
	if h.Handler != nil && h.passes(obj) {
		h.Handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate tells of an object that passes as an update if it passed before, otherwise
// as an addition, not of the first list; of one that passed before and does no more, as
// the deletion of its old state, which is exact: the last one that passed.
func (h TypedFilteringResourceEventHandler[T]) OnUpdate(oldObj, newObj T) {
	h.onUpdate(table.Key{}, oldObj, newObj)
}

// onUpdate is OnUpdate with the object's key, which a deletion has to carry.
func (h TypedFilteringResourceEventHandler[T]) onUpdate(key table.Key, oldObj, newObj T) {
	if h.Handler == nil {
		return
	}
	switch passed, passes := h.passes(oldObj), h.passes(newObj); {
	case passed && passes:
		tellUpdateOf(h.Handler, key, oldObj, newObj)
	case passes:
		h.Handler.OnAdd(newObj, false)
	case passed:
		h.Handler.OnDelete(DeletedObject[T]{OptionalObj: oldObj, key: key.String()})
	}
}

// OnDelete tells of the deletion of an object whose last known state passes. If none is
// known, FilterFunc has nothing to look at and is not called: Handler is told, for it may
// have heard of the object, and a deletion too many does less harm than one that is
// missed. (client-go's calls FilterFunc with T's zero value.)
func (h TypedFilteringResourceEventHandler[T]) OnDelete(obj DeletedObject[T]) {
	if h.Handler == nil {
		return
	}
	if last, known := obj.Last(); !known || h.passes(last) {
		h.Handler.OnDelete(obj)
	}
}

func (h TypedFilteringResourceEventHandler[T]) passes(obj T) bool {
	return h.FilterFunc == nil || h.FilterFunc(obj)
}

// tellUpdateOf tells a handler of an update, and a filter its key besides. It looks for
// the very types: a handler that embeds a filter has its unexported methods too, and
// perhaps an OnUpdate of its own.
func tellUpdateOf[T Object](handler TypedResourceEventHandler[T], key table.Key, oldObj, newObj T) {
	switch filter := handler.(type) {
	case TypedFilteringResourceEventHandler[T]:
		filter.onUpdate(key, oldObj, newObj)
	case *TypedFilteringResourceEventHandler[T]:
		filter.onUpdate(key, oldObj, newObj)
	default:
		handler.OnUpdate(oldObj, newObj)
	}
}

// typedHandler tells a typed handler what an untyped one is told. An object of another
// type is logged and not told: there is nobody who could take it, and others go on. For
// the handler it is not there.
type typedHandler[T Object] struct {
	handler TypedResourceEventHandler[T]
}

// OnAdd tells of obj.
func (h typedHandler[T]) OnAdd(obj any, isInInitialList bool) {
	if typed, ok := typedOf[T](obj); ok {
		h.handler.OnAdd(typed, isInInitialList)
		return
	}
	h.reportMisfit("add", "", obj)
}

// OnUpdate tells of both states, by whoever does not say the key.
func (h typedHandler[T]) OnUpdate(oldObj, newObj any) {
	h.onUpdate(table.Key{}, oldObj, newObj)
}

func (h typedHandler[T]) onUpdate(key table.Key, oldObj, newObj any) {
	newer, isNow := typedOf[T](newObj)
	older, was := typedOf[T](oldObj)
	switch {
	case isNow && was:
		tellUpdateOf(h.handler, key, older, newer)
	case isNow:
		// The handler has not been told of the other one.
		h.reportMisfit("update", key.String(), oldObj)
		h.handler.OnAdd(newer, false)
	case was:
		h.reportMisfit("update", key.String(), newObj)
		h.handler.OnDelete(DeletedObject[T]{OptionalObj: older, key: key.String()})
	default:
		h.reportMisfit("update", key.String(), newObj)
	}
}

// OnDelete tells of a deletion by whoever does not say the key.
func (h typedHandler[T]) OnDelete(obj any) { h.onDelete("", obj) }

// onDelete tells of a deletion also where nobody knows the last state: the handler may
// have been told of one. Where that is of another type it has not, or was told of the
// deletion with the update that made it so.
func (h typedHandler[T]) onDelete(key string, obj any) {
	deleted := DeletedObject[T]{key: key}
	if tombstone, ok := tombstoneOf(obj); ok {
		deleted = DeletedObject[T]{FinalStateUnknown: &tombstone}
		key, obj = tombstone.Key, tombstone.Obj
	}
	last, ok := typedOf[T](obj)
	if unknown := deleted.FinalStateUnknown != nil && isNilPointer(obj); !ok && !unknown {
		h.reportMisfit("delete", key, obj)
		return
	}
	deleted.OptionalObj = last
	h.handler.OnDelete(deleted)
}

// reportMisfit logs. It does not use apimachinery's error handlers, one of which
// sleeps: it would hold up this handler for each object.
func (h typedHandler[T]) reportMisfit(event, key string, obj any) {
	if key == "" {
		if name, err := ObjectToName(obj); err == nil {
			key = name.String()
		}
	}
	klog.Background().Error(misfitOf[T](obj), "Handler not told: object of another type", "event", event, "key", key)
}

// typedOf is the type assertion that fails for a nil pointer, too.
func typedOf[T any](obj any) (T, bool) {
	typed, ok := obj.(T)
	if !ok || isNilPointer(obj) {
		var none T
		return none, false
	}
	return typed, true
}

// misfitOf is the error for an object that is no T.
func misfitOf[T any](obj any) error {
	actual := fmt.Sprintf("%T", obj)
	if isNilPointer(obj) {
		actual = describe(obj)
	}
	return &UnexpectedTypeError{Expected: reflect.TypeFor[T]().String(), Actual: actual}
}
