package cache

import (
	"iter"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TypedLister reads the objects of an informer, or those of one namespace. It answers
// from memory, and may be used concurrently. What it returns is shared, and must not be
// changed.
//
// Its List and Get have the form of those that are generated for API types.
type TypedLister[T Object] struct {
	store *cache
	// resource is what an error calls it.
	resource  schema.GroupResource
	namespace string
	// unindexed is true if the index named NamespaceIndex is the user's own, which
	// may have anything for values.
	unindexed bool
}

// ByNamespace is the lister of one namespace, whose names are without it; of all of them
// if namespace is empty. It is for keys of the form namespace/name: with a key function
// that makes others, its List, All and ByIndex are right, its Lookup and Get look for
// "namespace/" and the name.
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

// Get is Lookup with an error that apierrors.IsNotFound knows. It names the resource as
// it is guessed from the kind, as "pods" from Pod.
func (l TypedLister[T]) Get(name string) (T, error) {
	obj, exists := l.Lookup(name)
	if !exists {
		return obj, apierrors.NewNotFound(l.resource, name)
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
// A namespace's lister has the whole keys, too: namespace/name.
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
// order; a namespace's lister looks at the objects of each value for that. It fails if
// there is no such index.
func (l TypedLister[T]) IndexValues(index string) ([]string, error) {
	if _, err := l.store.storage.indexers.Load().position(index); err != nil {
		return nil, err
	}
	values := l.store.ListIndexFuncValues(index)
	if l.namespace == "" {
		return values, nil
	}
	return slices.DeleteFunc(values, func(value string) bool {
		entries, _ := l.indexed(index, value)
		return len(entries) == 0
	}), nil
}

// entries are those of the lister's namespace.
func (l TypedLister[T]) entries() []*entry {
	if l.namespace == "" {
		return l.store.storage.snapshot()
	}
	if l.unindexed {
		return l.inNamespace(l.store.storage.snapshot())
	}
	entries, _ := l.store.storage.entriesByIndex(NamespaceIndex, l.namespace)
	return entries
}

// indexed are those that have a value in an index, of the lister's namespace.
func (l TypedLister[T]) indexed(index, value string) ([]*entry, error) {
	entries, err := l.store.storage.entriesByIndex(index, value)
	if err != nil || l.namespace == "" {
		return entries, err
	}
	return l.inNamespace(entries), nil
}

func (l TypedLister[T]) inNamespace(entries []*entry) []*entry {
	return slices.DeleteFunc(entries, func(e *entry) bool {
		obj, ok := e.obj.(T)
		return !ok || obj.GetNamespace() != l.namespace
	})
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
	each(entries, func(_ string, obj T) bool {
		if selector == nil || selector.Empty() || selector.Matches(labelsOf(obj)) {
			list = append(list, obj)
		}
		return true
	})
	return list
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

// resourceOf is what the API calls objects of type T, as far as can be guessed: by the
// kind of the example, or by the name of the Go type.
func resourceOf[T any](example any) schema.GroupResource {
	if gvk := gvkOf(example); gvk != nil {
		resource, _ := meta.UnsafeGuessKindToResource(*gvk)
		return resource.GroupResource()
	}
	t := reflect.TypeFor[T]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: t.Name()})
	return resource.GroupResource()
}
