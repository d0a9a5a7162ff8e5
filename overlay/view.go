package overlay

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache"
)

// view is the content of an overlay at one point in time.
type view struct {
	core  *core
	store cache.Reader[any]
	// writes are those shown in place of the store's objects.
	writes map[string]*write
}

// view returns the current content. As in core.shown, it reads the writes first, then the versions,
// then the store.
func (c *core) view() view {
	v := view{core: c}
	if c.count.Load() == 0 {
		v.store = c.store.Snapshot()
		return v
	}
	c.mu.RLock()
	writes := maps.Clone(c.writes)
	c.mu.RUnlock()
	applied := map[string]string{}
	for key := range writes {
		applied[key] = c.namespaceVersion(key)
	}
	v.store = c.store.Snapshot()
	at := time.Now()
	for key, w := range writes {
		if now := storeStateIn(v.store, key, applied[key]); c.hasExpired(w, at) || !w.isNewer(now) {
			c.remove(now, w)
			delete(writes, key)
		}
	}
	v.writes = writes
	return v
}

// get returns the object under a key, nil if a write hides it, or the error of the store's Get.
func (v view) get(key string) (obj any, err error) {
	if w := v.writes[key]; w != nil {
		return w.object, nil
	}
	return v.store.Get(key)
}

// each calls yield with the keys and objects of a namespace, or of all if it is empty.
func (v view) each(namespace string, yield func(string, any) bool) {
	for key, obj := range v.store.ByNamespace(namespace).All() {
		if v.writes[key] == nil && !yield(key, obj) {
			return
		}
	}
	for key, w := range v.writes {
		if w.object != nil && isIn(namespace, w.object) && !yield(key, w.object) {
			return
		}
	}
}

// eachByIndex calls yield with the keys and objects of a namespace that have a value in an index.
// It fails if the index does not exist.
func (v view) eachByIndex(namespace, index, value string, yield func(string, any) bool) error {
	stored, err := v.store.ByNamespace(namespace).AllByIndex(index, value)
	if err != nil {
		return err
	}
	for key, obj := range stored {
		if v.writes[key] == nil && !yield(key, obj) {
			return nil
		}
	}
	for key, w := range v.writes {
		if w.object == nil || !isIn(namespace, w.object) {
			continue
		}
		hasValue := slices.Contains(v.valuesOf(w, index), value)
		if hasValue && !yield(key, w.object) {
			return nil
		}
	}
	return nil
}

// indexValues returns the values in an index that objects of a namespace have, of those for which
// isRead returns true.
func (v view) indexValues(namespace, index string, isRead func(any) bool) ([]string, error) {
	stored, err := v.store.ByNamespace(namespace).IndexValues(index)
	if err != nil {
		return nil, err
	}
	values := sets.Set[string]{}
	for _, w := range v.writes {
		if w.object != nil && isIn(namespace, w.object) && isRead(w.object) {
			values.Insert(v.valuesOf(w, index)...)
		}
	}
	for _, value := range stored {
		if !values.Has(value) && v.isStoredWith(namespace, index, value, isRead) {
			values.Insert(value)
		}
	}
	return sets.List(values), nil
}

// isStoredWith reports whether an object of the store that is not hidden by a write has the value.
func (v view) isStoredWith(namespace, index, value string, isRead func(any) bool) bool {
	stored, _ := v.store.ByNamespace(namespace).AllByIndex(index, value) // indexValues has checked
	for key, obj := range stored {
		if v.writes[key] == nil && isRead(obj) {
			return true
		}
	}
	return false
}

// valuesOf returns the index values of a shown write. If the index was added after the write, they
// are computed now; an object for which that fails has none.
func (v view) valuesOf(w *write, index string) []string {
	values, computed := w.values[index]
	if !computed {
		values, _ = valuesOf(index, v.core.store.GetIndexers()[index], w.object)
	}
	return values
}

func isIn(namespace string, obj any) bool {
	if namespace == "" {
		return true
	}
	named, ok := obj.(interface{ GetNamespace() string })
	return ok && named.GetNamespace() == namespace
}
