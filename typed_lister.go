package cache

import (
	"iter"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/table"
)

// TypedLister reads the objects of an informer, or those of one namespace. It answers
// from memory, and may be used concurrently. What it returns is shared, and must not be
// changed.
//
// Each of its answers is of one moment, that at which it was asked, and two of them may be
// of two; a loop over All, Values or AllByIndex goes through what there was when the loop
// began. Ask a Snapshot where several answers must belong together. The zero value is the
// lister of an empty store without indexes.
//
// Its List and Get have the form of those that are generated for API types.
type TypedLister[T Object] struct {
	store *cache
	// frozen is what is read, where it is not what the store holds at the time.
	frozen Snapshot
	// resource is what an error calls it.
	resource  schema.GroupResource
	namespace string
	// unindexed is true if the index named NamespaceIndex is the user's own, which
	// may have anything for values.
	unindexed bool
}

// TypedSnapshot is a TypedLister of what there was at one moment: all that it is asked is
// answered from that, and it never changes. So does what ByNamespace makes of it. See
// Snapshot. The zero value is that of an empty store without indexes.
type TypedSnapshot[T Object] struct{ TypedLister[T] }

// Snapshot is what the lister reads now, for as long as it is kept.
func (l TypedLister[T]) Snapshot() TypedSnapshot[T] {
	l.frozen = l.now()
	return TypedSnapshot[T]{l}
}

// ResourceVersion is the version up to which it holds everything that the source had; empty
// if no list had been applied.
func (s TypedSnapshot[T]) ResourceVersion() string { return s.frozen.ResourceVersion() }

// ByNamespace is the lister of one namespace, whose names are without it; of all of them
// if namespace is empty. It is for keys of the form namespace/name: with a key function
// that makes others, its List, All and ByIndex are right, its Lookup and Get look for
// "namespace/" and the name.
func (l TypedLister[T]) ByNamespace(namespace string) TypedLister[T] {
	l.namespace = namespace
	return l
}

// ByNamespace is the snapshot of one namespace, as TypedLister.ByNamespace is the lister of
// one: of the same moment.
func (s TypedSnapshot[T]) ByNamespace(namespace string) TypedSnapshot[T] {
	return TypedSnapshot[T]{s.TypedLister.ByNamespace(namespace)}
}

// Snapshot is itself.
func (s TypedSnapshot[T]) Snapshot() TypedSnapshot[T] { return s }

// now is what the lister reads.
func (l TypedLister[T]) now() Snapshot {
	if l.isFrozen() {
		return l.frozen.orEmpty()
	}
	return l.store.Snapshot()
}

// isFrozen says whether the lister reads what is not the store's: also that of nothing.
func (l TypedLister[T]) isFrozen() bool { return l.frozen.table != nil || l.store == nil }

// Lookup returns the object with that key, namespace/name or name, or in a namespace's
// lister that name. It is false, too, for an object whose only state is quarantined: Get
// says so.
func (l TypedLister[T]) Lookup(name string) (obj T, exists bool) {
	var item any
	switch {
	case l.isFrozen():
		e, found := l.frozen.orEmpty().table.Get(table.Named(l.namespace, name))
		if !found {
			return obj, false
		}
		item = e.Object()
	case l.namespace == "":
		found, _ := l.store.storage.table.GetText(name)
		item = found.Object
	default:
		found, _ := l.store.storage.table.Get(table.Named(l.namespace, name))
		item = found.Object
	}
	obj, exists = item.(T)
	return obj, exists
}

// Get is Lookup with an error. If there is nothing because the only state that has come is
// quarantined (also if only since a snapshot was taken), it is an *ObjectError that says why,
// and ErrQuarantined: the source has the object. Otherwise apierrors.IsNotFound knows it; it
// names the resource as it is guessed from the kind, as "pods" from Pod.
func (l TypedLister[T]) Get(name string) (T, error) {
	obj, exists := l.Lookup(name)
	if exists {
		return obj, nil
	}
	if l.store != nil && !l.store.storage.quarantined.isEmpty() {
		if err := l.store.storage.quarantined.find(table.Named(l.namespace, name).String()); err != nil {
			return obj, err
		}
	}
	return obj, apierrors.NewNotFound(l.resource, name)
}

// Len is how many objects List returns for all. It takes no longer for more objects, unless the
// store has had some that are no Ts, or it is a namespace's and there is no index of namespaces.
func (l TypedLister[T]) Len() int {
	s := l.now()
	if (l.namespace == "" || !l.unindexed) && table.HasOnly[T](s.table) {
		return l.most(s)
	}
	count := 0
	l.objects(s, func(T) bool {
		count++
		return true
	})
	return count
}

// most is up to how many there are, as an index of namespaces says; 0 if nobody knows.
func (l TypedLister[T]) most(s Snapshot) int {
	switch {
	case l.namespace == "":
		return s.Len()
	case l.unindexed:
		return 0
	}
	at, err := s.indexers.position(NamespaceIndex)
	if err != nil {
		return 0 // a zero value
	}
	return s.table.HavingLen(at, l.namespace)
}

// List returns the objects that the selector selects, in no order; all of them for a nil
// selector. The slice is the caller's. The error is always nil.
func (l TypedLister[T]) List(selector labels.Selector) ([]T, error) {
	s := l.now()
	if selector == nil || selector.Empty() {
		if l.namespace == "" {
			return table.AppendObjectsOf(make([]T, 0, s.Len()), s.table), nil
		}
		if at, err := s.indexers.position(NamespaceIndex); err == nil && !l.unindexed {
			return table.ObjectsOfHaving[T](s.table, at, l.namespace), nil
		}
	}
	return selected(func(f func(T) bool) { l.objects(s, f) }, l.most(s), selector), nil
}

// All goes through the objects with their keys, in no order: as they are when a loop over
// them begins, of a TypedSnapshot as they were when that was taken. Nothing is copied but
// the keys. A namespace's lister has the whole keys, too: namespace/name. The store may be
// written to meanwhile, by the loop's body too.
func (l TypedLister[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s := l.now()
		if l.namespace == "" {
			s.table.EachWithKey(func(key string, e table.Entry) bool {
				obj, ok := e.Object().(T)
				return !ok || yield(key, obj)
			})
			return
		}
		l.entries(s, func(e table.Entry) bool {
			obj, ok := e.Object().(T)
			return !ok || yield(e.Key().String(), obj)
		})
	}
}

// Values is All without the keys, of which none is made.
func (l TypedLister[T]) Values() iter.Seq[T] {
	return func(yield func(T) bool) {
		l.objects(l.now(), yield)
	}
}

// ByIndex returns the objects that have a value in the named index, in no order. The
// slice is the caller's. It fails if there is no such index.
func (l TypedLister[T]) ByIndex(index, value string) ([]T, error) {
	s := l.now()
	at, err := s.indexers.position(index)
	if err != nil {
		return nil, err
	}
	if l.namespace == "" {
		return table.ObjectsOfHaving[T](s.table, at, value), nil
	}
	return selected(func(f func(T) bool) { l.indexed(s, at, value, typed(f)) }, s.table.HavingLen(at, value), nil), nil
}

// AllByIndex is All for the objects that have a value in the named index. It fails if there
// is no such index.
func (l TypedLister[T]) AllByIndex(index, value string) (iter.Seq2[string, T], error) {
	s := l.now()
	if _, err := s.indexers.position(index); err != nil {
		return nil, err
	}
	return func(yield func(string, T) bool) {
		s := l.now()
		at, _ := s.indexers.position(index)
		l.indexed(s, at, value, func(e table.Entry) bool {
			obj, ok := e.Object().(T)
			return !ok || yield(e.Key().String(), obj)
		})
	}, nil
}

// IndexValues returns the values that at least one object has in the named index, in no
// order; a namespace's lister looks at the objects of each value for that. It fails if
// there is no such index.
func (l TypedLister[T]) IndexValues(index string) ([]string, error) {
	s := l.now()
	values, err := s.IndexValues(index)
	if err != nil || l.namespace == "" {
		return values, err
	}
	at, _ := s.indexers.position(index)
	return slices.DeleteFunc(values, func(value string) bool {
		none := true
		l.indexed(s, at, value, func(table.Entry) bool {
			none = false
			return false
		})
		return none
	}), nil
}

// objects calls f with those of the lister's namespace that are Ts. All are, unless somebody
// else has written to the store.
func (l TypedLister[T]) objects(s Snapshot, f func(T) bool) {
	if l.namespace != "" {
		l.entries(s, typed(f))
		return
	}
	table.ObjectsOf(s.table, f)
}

// entries calls f with those of the lister's namespace, which it must have.
func (l TypedLister[T]) entries(s Snapshot, f func(table.Entry) bool) {
	if l.unindexed {
		s.table.Each(l.inNamespace(f))
		return
	}
	if at, err := s.indexers.position(NamespaceIndex); err == nil { // not so for a zero value
		s.table.Having(at, l.namespace, f)
	}
}

// indexed calls f with those that have a value in an index, of the lister's namespace.
func (l TypedLister[T]) indexed(s Snapshot, at int, value string, f func(table.Entry) bool) {
	if l.namespace != "" {
		f = l.inNamespace(f)
	}
	s.table.Having(at, value, f)
}

func (l TypedLister[T]) inNamespace(f func(table.Entry) bool) func(table.Entry) bool {
	return func(e table.Entry) bool {
		obj, ok := e.Object().(T)
		return !ok || obj.GetNamespace() != l.namespace || f(e)
	}
}

// typed has f called with those entries that hold a T.
func typed[T Object](f func(T) bool) func(table.Entry) bool {
	return func(e table.Entry) bool {
		obj, ok := e.Object().(T)
		return !ok || f(obj)
	}
}

// selected are those of at most so many objects that a selector selects.
func selected[T Object](all func(func(T) bool), most int, selector labels.Selector) []T {
	if selector != nil && !selector.Empty() {
		most = 0 // nobody knows
	}
	list := make([]T, 0, most)
	all(func(obj T) bool {
		if selector == nil || selector.Empty() || selector.Matches(labelsOf(obj)) {
			list = append(list, obj)
		}
		return true
	})
	return list
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
