package cache

import (
	"iter"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TypedLister reads the objects of an informer, or those of one namespace. It answers
// from memory, and may be used concurrently. What it returns is shared, and must not be
// changed.
//
// Its List and Get have the form of those that are generated for API types.
type TypedLister[T Object] struct {
	store     *cache
	namespace string
}

func newTypedLister[T Object](store *cache) TypedLister[T] { return TypedLister[T]{store: store} }

// ByNamespace is the lister of one namespace, whose names are without it; of all of them
// if namespace is empty.
func (l TypedLister[T]) ByNamespace(namespace string) TypedLister[T] {
	l.namespace = namespace
	return l
}

// key is where an object with that name is.
func (l TypedLister[T]) key(name string) string {
	if l.namespace == "" {
		return name
	}
	return l.namespace + "/" + name
}

// Lookup returns the object with that key, namespace/name or name, or in a namespace's
// lister that name.
func (l TypedLister[T]) Lookup(name string) (obj T, exists bool) {
	item, exists, _ := l.store.GetByKey(l.key(name))
	if !exists {
		return obj, false
	}
	obj, exists = item.(T)
	return obj, exists
}

// Get is Lookup with an error that apierrors.IsNotFound knows.
func (l TypedLister[T]) Get(name string) (T, error) {
	obj, exists := l.Lookup(name)
	if !exists {
		return obj, apierrors.NewNotFound(schema.GroupResource{Resource: typeName[T]()}, l.key(name))
	}
	return obj, nil
}

// Len is how many objects there are.
func (l TypedLister[T]) Len() int {
	if l.namespace == "" {
		return l.store.storage.len()
	}
	return len(l.entries())
}

// List returns the objects that the selector selects, in no order; all of them for a nil
// selector. The slice is the caller's. The error is always nil.
func (l TypedLister[T]) List(selector labels.Selector) ([]T, error) {
	return selected[T](l.entries(), selector), nil
}

// All goes through the objects with their keys, as they are when it begins, in no order.
// The store may be written to meanwhile, by the loop's body too.
func (l TypedLister[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) { each(l.entries(), yield) }
}

// Values is All without the keys.
func (l TypedLister[T]) Values() iter.Seq[T] { return withoutKeys(l.All()) }

// ByIndex returns the objects that have a value in the named index, in no order. The
// slice is the caller's. It fails if there is no such index.
func (l TypedLister[T]) ByIndex(index, value string) ([]T, error) {
	entries, err := l.indexed(index, value)
	if err != nil {
		return nil, err
	}
	return selected[T](entries, nil), nil
}

// AllByIndex goes through the objects that have a value in the named index, as they are
// when it begins, with their keys, in no order. It fails if there is no such index.
func (l TypedLister[T]) AllByIndex(index, value string) (iter.Seq2[string, T], error) {
	if _, err := l.store.storage.indexers.Load().position(index); err != nil {
		return nil, err
	}
	return func(yield func(string, T) bool) {
		entries, _ := l.indexed(index, value)
		each(entries, yield)
	}, nil
}

// IndexValues returns the values that at least one object has in the named index, in no
// order. It fails if there is no such index.
func (l TypedLister[T]) IndexValues(index string) ([]string, error) {
	if _, err := l.store.storage.indexers.Load().position(index); err != nil {
		return nil, err
	}
	return l.store.ListIndexFuncValues(index), nil
}

// entries are those of the lister's namespace.
func (l TypedLister[T]) entries() []*entry {
	if l.namespace == "" {
		return l.store.storage.snapshot()
	}
	// An informer always has this index.
	entries, _ := l.store.storage.entriesByIndex(NamespaceIndex, l.namespace)
	return entries
}

// indexed are those that have a value in an index, of the lister's namespace.
func (l TypedLister[T]) indexed(index, value string) ([]*entry, error) {
	entries, err := l.store.storage.entriesByIndex(index, value)
	if err != nil || l.namespace == "" {
		return entries, err
	}
	return slices.DeleteFunc(entries, func(e *entry) bool {
		obj, ok := e.obj.(T)
		return !ok || obj.GetNamespace() != l.namespace
	}), nil
}

// each goes through the entries that hold a T. All do, unless somebody else has written
// to the store.
func each[T Object](entries []*entry, yield func(string, T) bool) {
	for _, e := range entries {
		if obj, ok := e.obj.(T); ok && !yield(e.key, obj) {
			return
		}
	}
}

func selected[T Object](entries []*entry, selector labels.Selector) []T {
	list := make([]T, 0, len(entries))
	for _, obj := range withKeys[T](entries) {
		if selector == nil || selector.Empty() || selector.Matches(labelsOf(obj)) {
			list = append(list, obj)
		}
	}
	return list
}

func withKeys[T Object](entries []*entry) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) { each(entries, yield) }
}

func withoutKeys[T any](all iter.Seq2[string, T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, obj := range all {
			if !yield(obj) {
				return
			}
		}
	}
}

// labelsOf are an object's labels; it has none if it has no metadata.
func labelsOf(obj any) labels.Set {
	labelled, ok := obj.(interface{ GetLabels() map[string]string })
	if !ok {
		return nil
	}
	return labelled.GetLabels()
}

// typeName is what an error calls the resource: T without package and pointer.
func typeName[T any]() string {
	t := reflect.TypeFor[T]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}
