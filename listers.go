// Functions and listers of client-go that read an Indexer by namespace and label selector. Which
// objects does a selector select? A Reader answers that without them.

package cache

import (
	"cmp"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/loglines"
	"github.com/watchmirror/cache/internal/table"
)

// AppendFunc receives an object, which is shared: do not change it.
type AppendFunc func(any)

// ListAll calls appendFn with the objects that the selector selects; nil selects all. It holds no
// lock, and fails if labels cannot be read.
func ListAll(store Store, selector labels.Selector, appendFn AppendFunc) error {
	return appendSelected(store, store.List(), metav1.NamespaceAll, selector, appendFn)
}

// ListAllByNamespace is ListAll for one namespace, or for all if it is empty. With an index called
// NamespaceIndex it reads only that namespace.
func ListAllByNamespace(
	indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc,
) error {
	if namespace == metav1.NamespaceAll {
		return ListAll(indexer, selector, appendFn)
	}
	objects, err := indexer.ByIndex(NamespaceIndex, namespace)
	if err != nil {
		loglines.Background().V(4).Info("Listing reads all objects",
			"index", NamespaceIndex, "namespace", namespace, "err", err)
		return appendSelected(indexer, indexer.List(), namespace, selector, appendFn)
	}
	return appendSelected(indexer, objects, metav1.NamespaceAll, selector, appendFn)
}

// appendSelected calls appendFn with the objects of a namespace that the selector selects.
func appendSelected(
	store Store, objects []any, namespace string, selector labels.Selector, appendFn AppendFunc,
) error {
	for _, obj := range objects {
		match, err := matches(obj, namespace, selector)
		if err != nil {
			return fmt.Errorf("object %s: %w", quotedKeyOf(store, obj), err)
		}
		if match {
			appendFn(obj)
		}
	}
	return nil
}

// matches reports whether an object is in the namespace and has the labels. It reads no metadata if
// the answer does not depend on them.
func matches(obj any, namespace string, selector labels.Selector) (matches bool, err error) {
	allLabels := selector == nil || selector.Empty()
	if namespace == metav1.NamespaceAll && allLabels {
		return true, nil
	}
	if labels.MatchesNothing(selector) {
		return false, nil
	}
	if isNilPointer(obj) {
		return false, errNilObject
	}
	defer recoverPanic("reading metadata", &err)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return false, fmt.Errorf("%T has no metadata: %w", obj, err)
	}
	if namespace != metav1.NamespaceAll && accessor.GetNamespace() != namespace {
		return false, nil
	}
	return allLabels || selector.Matches(labels.Set(accessor.GetLabels())), nil
}

// quotedKeyOf returns the quoted key of an object of a store, or a description if it has none. It
// reads the whole store: only the store's key function knows the key, and it may have failed.
func quotedKeyOf(store Store, obj any) string {
	for _, key := range slices.Sorted(slices.Values(store.ListKeys())) {
		found, exists, err := store.GetByKey(key)
		if err == nil && exists && table.Same(found, obj) {
			return fmt.Sprintf("%q", key)
		}
	}
	return describe(obj)
}

// GenericLister reads an Indexer. It may be used concurrently.
type GenericLister interface {
	// List returns the selected objects of all namespaces, unordered; nil selects all.
	List(selector labels.Selector) (ret []runtime.Object, err error)
	// Get returns the object under a key, which is the name of an object without a namespace. The
	// error is apimachinery's NotFound. It wraps ErrQuarantined for an object whose only state is
	// quarantined.
	Get(name string) (runtime.Object, error)
	ByNamespace(namespace string) GenericNamespaceLister
}

// GenericNamespaceLister is a GenericLister of one namespace.
type GenericNamespaceLister interface {
	// List is GenericLister.List for the namespace. The empty namespace means all.
	List(selector labels.Selector) (ret []runtime.Object, err error)
	// Get returns the object under the key namespace/name, with the errors of GenericLister.Get.
	Get(name string) (runtime.Object, error)
}

// NewGenericLister is for code written for client-go; new code uses an Informer. Errors name the
// resource. It panics if indexer is nil.
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	mustHave(indexer != nil, "NewGenericLister: indexer is nil")
	return genericLister{indexer: indexer, resource: resource}
}

// genericLister implements both listers.
type genericLister struct {
	indexer   Indexer
	resource  schema.GroupResource
	namespace string
	// prefix precedes a name in a key.
	prefix string
}

func (l genericLister) ByNamespace(namespace string) GenericNamespaceLister {
	return genericLister{
		indexer:   l.indexer,
		resource:  l.resource,
		namespace: namespace,
		prefix:    namespace + "/",
	}
}

func (l genericLister) List(selector labels.Selector) (found []runtime.Object, err error) {
	var wrongType error
	err = ListAllByNamespace(l.indexer, l.namespace, selector, func(obj any) {
		typed, err := as[runtime.Object](obj)
		if err != nil && wrongType == nil {
			wrongType = fmt.Errorf("object %s: %w", quotedKeyOf(l.indexer, obj), err)
		}
		found = append(found, typed)
	})
	err = cmp.Or(err, wrongType)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", l.resource, err)
	}
	return found, nil
}

func (l genericLister) Get(name string) (runtime.Object, error) {
	key := l.prefix + name
	obj, exists, err := l.indexer.GetByKey(key)
	if err != nil {
		return nil, l.getError(key, err)
	}
	if !exists {
		return nil, apierrors.NewNotFound(l.resource, name)
	}
	typed, err := as[runtime.Object](obj)
	if err != nil {
		return nil, l.getError(key, err)
	}
	return typed, nil
}

func (l genericLister) getError(key string, err error) error {
	return fmt.Errorf("getting %s %q: %w", l.resource, key, err)
}
