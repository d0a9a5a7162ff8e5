package cache

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// AppendFunc takes the objects that ListAll and ListAllByNamespace find, one a call.
// They are shared with the store and must not be changed.
type AppendFunc func(any)

// ListAll hands appendFn the objects of the store that the selector selects, in no
// order; a nil selector selects everything. It works on one List of the store, without
// a lock, so appendFn may use the store.
//
// It fails at the first object whose labels are needed and cannot be read, because it
// is nil or has no metadata; the error names its key, and what appendFn has had by then
// is not all. A selector that selects everything needs no labels.
func ListAll(store Store, selector labels.Selector, appendFn AppendFunc) error {
	return choice{selector: selector}.from(store, store.List, appendFn)
}

// ListAllByNamespace is ListAll for the objects of one namespace; NamespaceAll, the
// empty one, stands for all of them. It asks the index called NamespaceIndex, whose
// values must be namespaces, as those of MetaNamespaceIndexFunc are. Without that index
// it looks at every object, and fails too if there is one whose namespace cannot be read.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc) error {
	if namespace == metav1.NamespaceAll {
		return ListAll(indexer, selector, appendFn)
	}
	objects, err := indexer.ByIndex(NamespaceIndex, namespace)
	if err != nil {
		klog.Background().V(4).Info("Listing a namespace by looking at every object: no such index", "index", NamespaceIndex, "namespace", namespace, "err", err)
		return choice{selector: selector, namespace: namespace}.from(indexer, indexer.List, appendFn)
	}
	return choice{selector: selector}.from(indexer, func() []any { return objects }, appendFn)
}

// choice is which objects a list is to have.
type choice struct {
	selector labels.Selector // nil: all
	// namespace is the one to look for, object by object; empty: they need not be asked.
	namespace string
}

// from hands appendFn those of the objects that are chosen. The store is where they
// are from.
func (c choice) from(store Store, objects func() []any, appendFn AppendFunc) error {
	if labels.MatchesNothing(c.selector) {
		return nil
	}
	all := c.namespace == "" && c.selectsAll()
	for _, obj := range objects() {
		if !all {
			chosen, err := c.has(obj)
			if err != nil {
				// Which key that was the object does not say. One that fails in the
				// same way is named.
				unreadable := func(obj any) bool { _, err := c.has(obj); return err != nil }
				return fmt.Errorf("object %s: %w", keyWhere(store, obj, unreadable), err)
			}
			if !chosen {
				continue
			}
		}
		appendFn(obj)
	}
	return nil
}

func (c choice) selectsAll() bool { return c.selector == nil || c.selector.Empty() }

// has says whether obj is chosen. It fails if that cannot be read from it.
func (c choice) has(obj any) (bool, error) {
	namespace, set, err := placeOf(obj)
	if err != nil {
		return false, err
	}
	if c.namespace != "" && namespace != c.namespace {
		return false, nil
	}
	return c.selectsAll() || c.selector.Matches(set), nil
}

// placeOf reads an object's namespace and labels.
func placeOf(obj any) (namespace string, set labels.Set, err error) {
	if isNilPointer(obj) {
		return "", nil, ErrNilObject
	}
	defer caught("reading metadata", &err)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return "", nil, fmt.Errorf("%T has no metadata: %w", obj, err)
	}
	return accessor.GetNamespace(), accessor.GetLabels(), nil
}

// keyWhere returns the first key, quoted, whose object is bad; obj's description if
// there is none any more. It looks at the whole store, and is for errors only.
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
	return &genericLister{indexer: indexer, resource: resource}
}

type genericLister struct {
	indexer  Indexer
	resource schema.GroupResource
}

func (l *genericLister) List(selector labels.Selector) ([]runtime.Object, error) {
	return l.list(metav1.NamespaceAll, selector)
}

func (l *genericLister) Get(name string) (runtime.Object, error) { return l.get(name, name) }

func (l *genericLister) ByNamespace(namespace string) GenericNamespaceLister {
	return &genericNamespaceLister{lister: l, namespace: namespace}
}

func (l *genericLister) list(namespace string, selector labels.Selector) ([]runtime.Object, error) {
	var found []runtime.Object
	var misfit error
	err := ListAllByNamespace(l.indexer, namespace, selector, func(obj any) {
		typed, err := as[runtime.Object](obj)
		if err == nil {
			found = append(found, typed)
		} else if misfit == nil {
			other := func(obj any) bool { _, err := as[runtime.Object](obj); return err != nil }
			misfit = fmt.Errorf("object %s: %w", keyWhere(l.indexer, obj, other), err)
		}
	})
	if err == nil {
		err = misfit
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", l.resource, err)
	}
	return found, nil
}

func (l *genericLister) get(key, name string) (runtime.Object, error) {
	obj, exists, err := l.indexer.GetByKey(key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("getting %s %q: %w", l.resource, key, err)
	case !exists:
		return nil, apierrors.NewNotFound(l.resource, name)
	}
	typed, err := as[runtime.Object](obj)
	if err != nil {
		return nil, fmt.Errorf("getting %s %q: %w", l.resource, key, err)
	}
	return typed, nil
}

type genericNamespaceLister struct {
	lister    *genericLister
	namespace string
}

func (l *genericNamespaceLister) List(selector labels.Selector) ([]runtime.Object, error) {
	return l.lister.list(l.namespace, selector)
}

func (l *genericNamespaceLister) Get(name string) (runtime.Object, error) {
	return l.lister.get(l.namespace+"/"+name, name)
}
