package overlay

import (
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
)

// Reader reads an overlay, or the objects of one namespace, from memory. It has the methods of
// cache.Reader with the same meaning, may be used concurrently, and returns shared objects, which
// must not be changed.
//
// Every read is a consistent point-in-time view, unordered. While no write is shown, a read costs
// as much as one of the informer, and takes no lock. Otherwise a read that lists also looks at each
// observed write.
type Reader[T cache.Object] struct {
	core *core
	// base reads the store directly, if direct is true; otherwise core reads it.
	base   cache.Reader[T]
	direct bool
	// frozen is the view of a snapshot, nil for the current content.
	frozen    *view
	resource  schema.GroupResource
	namespace string
}

// showsNoWrites returns whether no write is shown, so that base can be read directly.
func (r Reader[T]) showsNoWrites() bool {
	switch {
	case !r.direct:
		return false
	case r.frozen != nil:
		return len(r.frozen.writes) == 0
	}
	return r.core.count.Load() == 0
}

func (r Reader[T]) now() view {
	if r.frozen != nil {
		return *r.frozen
	}
	return r.core.view()
}

// Snapshot returns a reader of the current state that never changes: objects, observed writes,
// indexes and version are from one point in time. As with cache.Reader.Snapshot, do not retain one.
func (r Reader[T]) Snapshot() Reader[T] {
	switch {
	case r.frozen != nil:
	case r.showsNoWrites():
		r.frozen = &view{}
		r.base = r.base.Snapshot()
	default:
		now := r.core.view()
		// base reads the current store, so it must not be used.
		r.frozen = &now
		r.direct = false
	}
	return r
}

// ByNamespace returns a reader of one namespace, in which names have no namespace. Empty means all
// namespaces.
func (r Reader[T]) ByNamespace(namespace string) Reader[T] {
	r.namespace = namespace
	r.base = r.base.ByNamespace(namespace)
	return r
}

// ResourceVersion returns the store's applied version. Observed writes do not change it.
func (r Reader[T]) ResourceVersion() string {
	if r.showsNoWrites() {
		return r.base.ResourceVersion()
	}
	return r.now().store.ResourceVersion()
}

// key returns the key for a name.
func (r Reader[T]) key(name string) string {
	return cache.NewObjectName(r.namespace, name).String()
}

// Lookup returns the object that can be read under key, which is as in Get. False does not mean
// that the source lacks the object: its only state may be quarantined. Code that acts on a missing
// object must call Get, which tells the two apart.
func (r Reader[T]) Lookup(name string) (obj T, exists bool) {
	if r.showsNoWrites() {
		return r.base.Lookup(name)
	}
	obj, err := r.get(name)
	return obj, err == nil
}

// Get returns the object under key: namespace/name or name; in a namespace's reader, the name. If
// there is none, apierrors.IsNotFound is true for the error; if its only state is quarantined, the
// error wraps cache.ErrQuarantined.
func (r Reader[T]) Get(name string) (T, error) {
	if r.showsNoWrites() {
		return r.base.Get(name)
	}
	return r.get(name)
}

// get is Get while a write is shown.
func (r Reader[T]) get(name string) (obj T, err error) {
	key := r.key(name)
	var item any
	if r.frozen != nil {
		item, err = r.frozen.get(key)
	} else {
		item, err = r.core.get(key)
	}
	obj, fits := item.(T)
	if !fits && (err == nil || apierrors.IsNotFound(err)) {
		return obj, apierrors.NewNotFound(r.resource, name)
	}
	return obj, err
}

// Len returns the number of objects. While a write is shown it counts them one by one.
func (r Reader[T]) Len() (count int) {
	if r.showsNoWrites() {
		return r.base.Len()
	}
	for range r.All() {
		count++
	}
	return count
}

// List returns the objects that match the selector; nil selects all. The error is always nil.
func (r Reader[T]) List(selector labels.Selector) ([]T, error) {
	if r.showsNoWrites() {
		return r.base.List(selector)
	}
	list := []T{}
	for obj := range r.Values() {
		if selector == nil || selector.Empty() || selector.Matches(labelsOf(obj)) {
			list = append(list, obj)
		}
	}
	return list, nil
}

func labelsOf(obj any) labels.Set {
	if labelled, ok := obj.(interface{ GetLabels() map[string]string }); ok {
		return labelled.GetLabels()
	}
	return nil
}

// All iterates over keys and objects as they are when the loop begins. Other goroutines, and the
// loop's body, may write meanwhile.
func (r Reader[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		if r.showsNoWrites() {
			r.base.All()(yield)
			return
		}
		r.now().each(r.namespace, typed(yield))
	}
}

// Values is All without keys.
func (r Reader[T]) Values() iter.Seq[T] {
	return func(yield func(T) bool) {
		if r.showsNoWrites() {
			r.base.Values()(yield)
			return
		}
		r.now().each(r.namespace, typed(func(_ string, obj T) bool { return yield(obj) }))
	}
}

// typed calls yield for the objects of type T.
func typed[T any](yield func(string, T) bool) func(string, any) bool {
	return func(key string, obj any) bool {
		one, ok := obj.(T)
		return !ok || yield(key, one)
	}
}

// ByIndex returns the objects with a value in the named index. It fails if the index does not
// exist.
func (r Reader[T]) ByIndex(index, value string) ([]T, error) {
	if r.showsNoWrites() {
		return r.base.ByIndex(index, value)
	}
	list := []T{}
	err := r.now().eachByIndex(r.namespace, index, value, typed(func(_ string, obj T) bool {
		list = append(list, obj)
		return true
	}))
	if err != nil {
		return nil, err
	}
	return list, nil
}

// AllByIndex is All for the objects with a value in the named index. It fails if the index does not
// exist.
func (r Reader[T]) AllByIndex(index, value string) (iter.Seq2[string, T], error) {
	if r.showsNoWrites() {
		if _, err := r.base.AllByIndex(index, value); err != nil {
			return nil, err
		}
	} else if _, err := r.now().store.AllByIndex(index, value); err != nil {
		return nil, err
	}
	return func(yield func(string, T) bool) {
		// No error: an index is never removed.
		_ = r.now().eachByIndex(r.namespace, index, value, typed(yield))
	}, nil
}

// IndexValues returns the values in the named index. It fails if the index does not exist.
func (r Reader[T]) IndexValues(index string) ([]string, error) {
	if r.showsNoWrites() {
		return r.base.IndexValues(index)
	}
	return r.now().indexValues(r.namespace, index, func(obj any) bool {
		_, isT := obj.(T)
		return isT
	})
}
