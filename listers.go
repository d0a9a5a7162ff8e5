package cache

import (
	"fmt"
	"iter"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/table"
)

// AppendFunc gets the objects that ListAll and ListAllByNamespace find, one a call.
// They are shared with the store and must not be changed.
type AppendFunc func(any)

// ListAll calls appendFn with the objects of the store that the selector selects, in no
// order; a nil selector selects everything. It works on one List of the store, without
// a lock, so appendFn may use the store.
//
// It fails at the first object whose labels are needed and cannot be read, because it
// is nil or has no metadata; the error names its key, and appendFn has not been called for all
// then. A selector that selects everything needs no labels.
func ListAll(store Store, selector labels.Selector, appendFn AppendFunc) error {
	return appendMatching(store, store.List(), metav1.NamespaceAll, selector, appendFn)
}

// ListAllByNamespace is ListAll for the objects of one namespace, or of all for NamespaceAll,
// the empty one. It uses the index called NamespaceIndex, whose
// values must be namespaces, as those of MetaNamespaceIndexFunc are. Without that index
// it looks at every object, and fails too if the namespace of one cannot be read.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc) error {
	if namespace == metav1.NamespaceAll {
		return ListAll(indexer, selector, appendFn)
	}
	objects, err := indexer.ByIndex(NamespaceIndex, namespace)
	if err != nil {
		klog.Background().V(4).Info("Listing a namespace by looking at every object: no such index", "index", NamespaceIndex, "namespace", namespace, "err", err)
		return appendMatching(indexer, indexer.List(), namespace, selector, appendFn)
	}
	return appendMatching(indexer, objects, metav1.NamespaceAll, selector, appendFn)
}

// appendMatching calls appendFn with those objects of a store that are of a namespace and are selected.
func appendMatching(store Store, objects []any, namespace string, selector labels.Selector, appendFn AppendFunc) error {
	if labels.MatchesNothing(selector) {
		return nil
	}
	selectsAll := selector == nil || selector.Empty()
	matches := func(obj any) (matches bool, err error) {
		if isNilPointer(obj) {
			return false, errNilObject
		}
		defer caught("reading metadata", &err)
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return false, fmt.Errorf("%T has no metadata: %w", obj, err)
		}
		return (namespace == metav1.NamespaceAll || accessor.GetNamespace() == namespace) &&
			(selectsAll || selector.Matches(labels.Set(accessor.GetLabels()))), nil
	}
	for _, obj := range objects {
		if namespace != metav1.NamespaceAll || !selectsAll {
			match, err := matches(obj)
			if err != nil {
				unreadable := func(obj any) bool { _, err := matches(obj); return err != nil }
				return fmt.Errorf("object %s: %w", keyWhere(store, obj, unreadable), err)
			}
			if !match {
				continue
			}
		}
		appendFn(obj)
	}
	return nil
}

// keyWhere returns the first key, quoted, whose object is bad, since an object need not know its key; or a
// description of obj if there is none. It looks at the whole store, and is for errors only.
func keyWhere(store Store, obj any, bad func(obj any) bool) string {
	for _, key := range slices.Sorted(slices.Values(store.ListKeys())) {
		if found, exists, err := store.GetByKey(key); err == nil && exists && bad(found) {
			return fmt.Sprintf("%q", key)
		}
	}
	return describe(obj)
}

// GenericLister reads an Indexer of objects of any one kind. It may be used
// concurrently and answers from memory. Objects are shared and must not be changed.
type GenericLister interface {
	// List returns the objects of all namespaces that the selector selects, in no
	// order; a nil selector selects everything. It fails for an object that is no
	// runtime.Object, and as ListAll does.
	List(selector labels.Selector) (ret []runtime.Object, err error)
	// Get returns the object under the key, which for objects without a namespace is
	// the name. If there is none, the error is a NotFound of apimachinery's errors
	// package; if there is none because the only state that has come is quarantined, it is
	// the indexer's (see Store.GetByKey), and no NotFound.
	Get(name string) (runtime.Object, error)
	// ByNamespace returns a lister of one namespace.
	ByNamespace(namespace string) GenericNamespaceLister
}

// GenericNamespaceLister is a GenericLister of one namespace.
type GenericNamespaceLister interface {
	// List is GenericLister's List for the namespace; for the empty one, for all.
	List(selector labels.Selector) (ret []runtime.Object, err error)
	// Get returns the object of that name in the namespace, found under the key
	// namespace/name, with the errors of GenericLister's Get. As in client-go it finds no object without
	// a namespace: the key of such a one is its name, and GenericLister has it.
	Get(name string) (runtime.Object, error)
}

// NewGenericLister returns a lister of what indexer holds. The resource is what
// NotFound errors name. It panics if indexer is nil.
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	mustHave(indexer != nil, "NewGenericLister: indexer is nil")
	return genericLister{indexer: indexer, resource: resource}
}

// genericLister is both listers.
type genericLister struct {
	indexer    Indexer
	resource   schema.GroupResource
	namespaced bool
	namespace  string
}

func (l genericLister) ByNamespace(namespace string) GenericNamespaceLister {
	return genericLister{l.indexer, l.resource, true, namespace}
}

func (l genericLister) List(selector labels.Selector) (found []runtime.Object, err error) {
	var wrongType error
	err = ListAllByNamespace(l.indexer, l.namespace, selector, func(obj any) {
		typed, err := as[runtime.Object](obj)
		found = append(found, typed)
		if err != nil && wrongType == nil {
			other := func(obj any) bool { _, err := as[runtime.Object](obj); return err != nil }
			wrongType = fmt.Errorf("object %s: %w", keyWhere(l.indexer, obj, other), err)
		}
	})
	if err == nil {
		err = wrongType
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", l.resource, err)
	}
	return found, nil
}

func (l genericLister) Get(name string) (runtime.Object, error) {
	key := name
	if l.namespaced {
		key = l.namespace + "/" + name
	}
	obj, exists, err := l.indexer.GetByKey(key)
	if err == nil && !exists {
		return nil, apierrors.NewNotFound(l.resource, name)
	}
	var typed runtime.Object
	if err == nil {
		typed, err = as[runtime.Object](obj)
	}
	if err != nil {
		return nil, fmt.Errorf("getting %s %q: %w", l.resource, key, err)
	}
	return typed, nil
}

// TypedLister reads the objects of an informer, or those of one namespace. It reads from
// memory, and may be used concurrently. The objects are shared, and must not be
// changed.
//
// Every read is a consistent point-in-time view; a loop over All, Values or AllByIndex sees the
// state at its beginning. Two reads may observe different versions; use a Snapshot when they must
// agree. The zero value is the lister of an empty store without indexes.
//
// Its List and Get have the form of those that are generated for API types.
type TypedLister[T Object] struct {
	store *cache
	// frozen is read instead of the store, if it has a table.
	frozen Snapshot
	// resource is for errors.
	resource  schema.GroupResource
	namespace string
	// unindexed is true if the index named NamespaceIndex is the user's own, which
	// may have any values.
	unindexed bool
}

// TypedSnapshot is a TypedLister of one point in time: it never changes, nor does the result of
// its ByNamespace. See Snapshot. The zero value is that of an empty store without indexes.
type TypedSnapshot[T Object] struct{ TypedLister[T] }

// Snapshot returns the lister of the present state.
func (l TypedLister[T]) Snapshot() TypedSnapshot[T] {
	l.frozen = l.now()
	return TypedSnapshot[T]{l}
}

// ResourceVersion is the version up to which it has all changes of the source; empty
// if no list had been applied.
func (s TypedSnapshot[T]) ResourceVersion() string { return s.frozen.ResourceVersion() }

// ByNamespace returns the lister of one namespace, whose names are without it; of all of them
// if namespace is empty. It is for keys of the form namespace/name: with a key function
// that makes others, its List, All and ByIndex are right, its Lookup and Get look for
// "namespace/" and the name.
func (l TypedLister[T]) ByNamespace(namespace string) TypedLister[T] {
	l.namespace = namespace
	return l
}

// ByNamespace is TypedLister.ByNamespace for the same point in time.
func (s TypedSnapshot[T]) ByNamespace(namespace string) TypedSnapshot[T] {
	return TypedSnapshot[T]{s.TypedLister.ByNamespace(namespace)}
}

// Snapshot returns s.
func (s TypedSnapshot[T]) Snapshot() TypedSnapshot[T] { return s }

// now is the state that the lister reads.
func (l TypedLister[T]) now() Snapshot {
	if l.frozen.table != nil || l.store == nil {
		return l.frozen.orEmpty()
	}
	return l.store.Snapshot()
}

// Lookup returns the object with that key, namespace/name or name, or in a namespace's
// lister that name. It is false, too, for an object whose only state is quarantined: Get
// reports that.
func (l TypedLister[T]) Lookup(name string) (obj T, exists bool) {
	var item any
	switch {
	case l.frozen.table != nil || l.store == nil:
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

// Get is Lookup with an error: for an object whose only state is
// quarantined (also if only since a snapshot was taken) an *ObjectError with the cause,
// and ErrQuarantined; otherwise one for which apierrors.IsNotFound is true. That names the
// resource as it is guessed from the kind, as "pods" from Pod.
func (l TypedLister[T]) Get(name string) (T, error) {
	obj, exists := l.Lookup(name)
	if exists {
		return obj, nil
	}
	if l.store != nil && !l.store.storage.quarantine.isEmpty() {
		if err := l.store.storage.quarantine.find(table.Named(l.namespace, name).String()); err != nil {
			return obj, err
		}
	}
	return obj, apierrors.NewNotFound(l.resource, name)
}

// Len is the number of objects that List returns for all. It is O(1), unless the
// store has had objects that are no Ts, or for a namespace without an index of namespaces.
func (l TypedLister[T]) Len() int {
	s := l.now()
	if table.HasOnly[T](s.table) {
		if l.namespace == "" {
			return s.Len()
		}
		if at, ok := l.namespaceIndex(s); ok {
			return s.table.HavingLen(at, l.namespace)
		}
	}
	count := 0
	l.objects(s, func(T) bool {
		count++
		return true
	})
	return count
}

// List returns the objects that the selector selects, in no order; all of them for a nil
// selector. The slice is the caller's. The error is always nil.
func (l TypedLister[T]) List(selector labels.Selector) ([]T, error) {
	s := l.now()
	all := selector == nil || selector.Empty()
	if at, ok := l.namespaceIndex(s); all && l.namespace == "" {
		return table.AppendObjectsOf(make([]T, 0, s.Len()), s.table), nil
	} else if all && ok {
		return table.ObjectsOfHaving[T](s.table, at, l.namespace), nil
	}
	list := []T{}
	l.objects(s, func(obj T) bool {
		var set labels.Set
		if labelled, ok := any(obj).(interface{ GetLabels() map[string]string }); ok && !all {
			set = labelled.GetLabels()
		}
		if all || selector.Matches(set) {
			list = append(list, obj)
		}
		return true
	})
	return list, nil
}

// All iterates over the objects with their keys, in no order, as they are when a loop over
// them begins, or when a TypedSnapshot was taken. Nothing is copied but
// the keys. A namespace's lister has the whole keys, too: namespace/name. The store may be
// written to meanwhile, by the loop's body too.
func (l TypedLister[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s := l.now()
		if l.namespace != "" {
			l.entries(s, withKeys(yield))
			return
		}
		s.table.EachWithKey(func(key string, e table.Entry) bool {
			obj, ok := e.Object().(T)
			return !ok || yield(key, obj)
		})
	}
}

// Values is All without making the keys.
func (l TypedLister[T]) Values() iter.Seq[T] {
	return func(yield func(T) bool) { l.objects(l.now(), yield) }
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
	list := []T{}
	s.table.Having(at, value, l.inNamespace(func(e table.Entry) bool {
		list = append(list, e.Object().(T))
		return true
	}))
	return list, nil
}

// AllByIndex is All for the objects that have a value in the named index. It fails if there
// is no such index.
func (l TypedLister[T]) AllByIndex(index, value string) (iter.Seq2[string, T], error) {
	if _, err := l.now().indexers.position(index); err != nil {
		return nil, err
	}
	return func(yield func(string, T) bool) {
		s := l.now()
		at, _ := s.indexers.position(index)
		s.table.Having(at, value, l.inNamespace(withKeys(yield)))
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
		s.table.Having(at, value, l.inNamespace(func(table.Entry) bool {
			none = false
			return false
		}))
		return none
	}), nil
}

// namespaceIndex is the position of the index of namespaces, if there is one.
func (l TypedLister[T]) namespaceIndex(s Snapshot) (at int, ok bool) {
	at, err := s.indexers.position(NamespaceIndex)
	return at, err == nil && !l.unindexed
}

// objects calls f with the Ts of the lister's namespace.
func (l TypedLister[T]) objects(s Snapshot, f func(T) bool) {
	if l.namespace == "" {
		table.ObjectsOf(s.table, f)
		return
	}
	l.entries(s, func(e table.Entry) bool {
		obj, ok := e.Object().(T)
		return !ok || f(obj)
	})
}

// entries calls f with the entries of the lister's namespace, which it must have.
func (l TypedLister[T]) entries(s Snapshot, f func(table.Entry) bool) {
	if at, ok := l.namespaceIndex(s); ok {
		s.table.Having(at, l.namespace, f)
		return
	}
	s.table.Each(l.inNamespace(f))
}

// inNamespace has f called with the Ts of the lister's namespace, or with all entries if it has none.
func (l TypedLister[T]) inNamespace(f func(table.Entry) bool) func(table.Entry) bool {
	if l.namespace == "" {
		return f
	}
	return func(e table.Entry) bool {
		obj, ok := e.Object().(T)
		return !ok || obj.GetNamespace() != l.namespace || f(e)
	}
}

// withKeys has yield called with those entries that hold a T.
func withKeys[T Object](yield func(string, T) bool) func(table.Entry) bool {
	return func(e table.Entry) bool {
		obj, ok := e.Object().(T)
		return !ok || yield(e.Key().String(), obj)
	}
}

// resourceOf guesses the API's name of objects of type T by the kind of the example, or by the name of the
// Go type.
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
