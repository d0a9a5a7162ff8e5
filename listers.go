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

// AppendFunc receives an object, which is shared and must not be changed.
type AppendFunc func(any)

// ListAll calls appendFn, without a lock, with the objects that the selector selects; nil selects all. It stops at the
// first whose labels cannot be read.
func ListAll(store Store, selector labels.Selector, appendFn AppendFunc) error {
	return appendFn.matching(store, store.List(), metav1.NamespaceAll, selector)
}

// ListAllByNamespace is ListAll for one namespace, or for all if it is empty. With an index called NamespaceIndex it
// reads only that namespace.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc) error {
	if namespace == metav1.NamespaceAll {
		return ListAll(indexer, selector, appendFn)
	}
	objects, err := indexer.ByIndex(NamespaceIndex, namespace)
	if err != nil {
		klog.Background().V(4).Info("Listing a namespace by looking at every object: no such index", "index", NamespaceIndex, "namespace", namespace, "err", err)
		return appendFn.matching(indexer, indexer.List(), namespace, selector)
	}
	return appendFn.matching(indexer, objects, metav1.NamespaceAll, selector)
}

// matching calls the function with those objects of a store that are of a namespace and are selected.
func (appendFn AppendFunc) matching(store Store, objects []any, namespace string, selector labels.Selector) error {
	if labels.MatchesNothing(selector) {
		return nil
	}
	everything := namespace == metav1.NamespaceAll && (selector == nil || selector.Empty())
	for _, obj := range objects {
		if !everything {
			match, err := matches(obj, namespace, selector)
			if err != nil {
				return fmt.Errorf("object %s: %w", keyWhere(store, obj), err)
			}
			if !match {
				continue
			}
		}
		appendFn(obj)
	}
	return nil
}

func matches(obj any, namespace string, selector labels.Selector) (matches bool, err error) {
	if isNilPointer(obj) {
		return false, errNilObject
	}
	defer caught("reading metadata", &err)
	about, err := meta.Accessor(obj)
	if err != nil {
		return false, fmt.Errorf("%T has no metadata: %w", obj, err)
	}
	return (namespace == metav1.NamespaceAll || about.GetNamespace() == namespace) &&
		(selector == nil || selector.Matches(labels.Set(about.GetLabels()))), nil
}

// keyWhere returns the quoted key of an object of a store, since an object need not know its key; or a
// description if there is none. It looks at the whole store, and is for errors only.
func keyWhere(store Store, obj any) string {
	for _, key := range slices.Sorted(slices.Values(store.ListKeys())) {
		if found, exists, err := store.GetByKey(key); err == nil && exists && table.Same(found, obj) {
			return fmt.Sprintf("%q", key)
		}
	}
	return describe(obj)
}

// GenericLister reads an Indexer. It may be used concurrently.
type GenericLister interface {
	// List returns the objects of all namespaces that the selector selects, in no order; nil selects all.
	List(selector labels.Selector) (ret []runtime.Object, err error)
	// Get returns the object under the key: the name, for objects without a namespace. The error is apimachinery's
	// NotFound or, for an object whose only state is quarantined, one that wraps ErrQuarantined.
	Get(name string) (runtime.Object, error)
	ByNamespace(namespace string) GenericNamespaceLister
}

// GenericNamespaceLister is a GenericLister of one namespace.
type GenericNamespaceLister interface {
	// List is GenericLister.List for the namespace; for the empty one, for all.
	List(selector labels.Selector) (ret []runtime.Object, err error)
	// Get returns the object under the key namespace/name, with the errors of GenericLister.Get.
	Get(name string) (runtime.Object, error)
}

// NewGenericLister is for code written for client-go; new code uses an Informer. Errors name the resource. It panics if
// indexer is nil.
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
	var misfit error
	err = ListAllByNamespace(l.indexer, l.namespace, selector, func(obj any) {
		typed, err := as[runtime.Object](obj)
		if err != nil && misfit == nil {
			misfit = fmt.Errorf("object %s: %w", keyWhere(l.indexer, obj), err)
		}
		found = append(found, typed)
	})
	if err == nil {
		err = misfit
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

// TypedLister reads the objects of an informer, or those of one namespace. It may be used concurrently. The objects are
// shared and must not be changed.
//
// Every read is a consistent point-in-time view, unordered. Two reads may observe different versions; use a Snapshot
// when they must agree.
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

// Snapshot returns a lister of the present state, which never changes.
func (l TypedLister[T]) Snapshot() TypedLister[T] {
	l.frozen = l.now()
	return l
}

// ResourceVersion is the applied version; empty before the first list.
func (l TypedLister[T]) ResourceVersion() string { return l.now().ResourceVersion() }

// ByNamespace returns the lister of one namespace, or of all if it is empty. Its Lookup and Get expect names, and keys
// of the form namespace/name.
func (l TypedLister[T]) ByNamespace(namespace string) TypedLister[T] {
	l.namespace = namespace
	return l
}

// now is the state that the lister reads.
func (l TypedLister[T]) now() Snapshot {
	if l.frozen.table != nil || l.store == nil {
		return l.frozen.orEmpty()
	}
	return l.store.Snapshot()
}

// Lookup is Get without an error.
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

// Get returns the object under key (in a namespace's lister, name). The error is apierrors.IsNotFound or, for a
// quarantined state, an *ObjectError.
func (l TypedLister[T]) Get(name string) (T, error) {
	obj, exists := l.Lookup(name)
	if exists {
		return obj, nil
	}
	if l.store != nil && l.store.storage.quarantine.any() {
		if err := l.store.storage.quarantine.find(table.Named(l.namespace, name).String()); err != nil {
			return obj, err
		}
	}
	return obj, apierrors.NewNotFound(l.resource, name)
}

// Len returns the number of objects.
func (l TypedLister[T]) Len() int {
	s := l.now()
	at := l.namespaceIndex(s)
	switch only := table.HasOnly[T](s.table); {
	case only && l.namespace == "":
		return s.Len()
	case only && at != noIndex:
		return s.table.HavingLen(at, l.namespace)
	}
	count := 0
	for range l.entries(s, noIndex, "") {
		count++
	}
	return count
}

// List returns the selected objects; nil selects all. The error is nil.
func (l TypedLister[T]) List(selector labels.Selector) ([]T, error) {
	s := l.now()
	at := l.namespaceIndex(s)
	switch all := selector == nil || selector.Empty(); {
	case all && l.namespace == "":
		return table.AppendObjectsOf(make([]T, 0, s.Len()), s.table), nil
	case all && at != noIndex:
		return table.ObjectsOfHaving[T](s.table, at, l.namespace), nil
	case all:
		selector = labels.Everything()
	}
	list := []T{}
	for _, obj := range l.entries(s, noIndex, "") {
		var set labels.Set
		if labelled, ok := any(obj).(interface{ GetLabels() map[string]string }); ok {
			set = labelled.GetLabels()
		}
		if selector.Matches(set) {
			list = append(list, obj)
		}
	}
	return list, nil
}

// All iterates over whole keys and objects as they are when the loop begins.
func (l TypedLister[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s := l.now()
		if l.namespace != "" {
			l.withKeys(s, noIndex, "", yield)
			return
		}
		s.table.EachWithKey(func(key string, e table.Entry) bool {
			obj, ok := e.Object().(T)
			return !ok || yield(key, obj)
		})
	}
}

// Values is All without keys.
func (l TypedLister[T]) Values() iter.Seq[T] {
	return func(yield func(T) bool) { l.values(yield) }
}

func (l TypedLister[T]) values(yield func(T) bool) {
	s := l.now()
	if l.namespace == "" {
		table.ObjectsOf(s.table, yield)
		return
	}
	l.each(s, noIndex, "", func(_ table.Entry, obj T) bool { return yield(obj) })
}

// ByIndex returns the objects that have the value; it fails without the index.
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
	for _, obj := range l.entries(s, at, value) {
		list = append(list, obj)
	}
	return list, nil
}

// AllByIndex is ByIndex as an iterator over keys and objects.
func (l TypedLister[T]) AllByIndex(index, value string) (iter.Seq2[string, T], error) {
	at, err := l.now().indexers.position(index) // an index keeps its position
	if err != nil {
		return nil, err
	}
	return func(yield func(string, T) bool) { l.withKeys(l.now(), at, value, yield) }, nil
}

// IndexValues returns the values of an index; an error if it does not exist.
func (l TypedLister[T]) IndexValues(index string) ([]string, error) {
	s := l.now()
	values, err := s.IndexValues(index)
	if err != nil || l.namespace == "" {
		return values, err
	}
	at, _ := s.indexers.position(index)
	return slices.DeleteFunc(values, func(value string) bool {
		for range l.entries(s, at, value) {
			return false
		}
		return true
	}), nil
}

const noIndex = -1

// namespaceIndex is the position of the index of namespaces, if there is one.
func (l TypedLister[T]) namespaceIndex(s Snapshot) int {
	at, err := s.indexers.position(NamespaceIndex)
	if err != nil || l.unindexed {
		return noIndex
	}
	return at
}

// entries are the Ts of the lister's namespace that have a value in an index, or all of them. Like other iterators here
// it only calls a method, so that the compiler allocates nothing for a loop.
func (l TypedLister[T]) entries(s Snapshot, at int, value string) iter.Seq2[table.Entry, T] {
	return func(yield func(table.Entry, T) bool) { l.each(s, at, value, yield) }
}

func (l TypedLister[T]) each(s Snapshot, at int, value string, f func(table.Entry, T) bool) {
	if at == noIndex && l.namespace != "" {
		at, value = l.namespaceIndex(s), l.namespace
	}
	visit := func(e table.Entry) bool {
		obj, ok := e.Object().(T)
		return !ok || l.namespace != "" && obj.GetNamespace() != l.namespace || f(e, obj)
	}
	if at == noIndex {
		s.table.Each(visit)
	} else {
		s.table.Having(at, value, visit)
	}
}

func (l TypedLister[T]) withKeys(s Snapshot, at int, value string, yield func(string, T) bool) {
	l.each(s, at, value, func(e table.Entry, obj T) bool { return yield(e.Key().String(), obj) })
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
