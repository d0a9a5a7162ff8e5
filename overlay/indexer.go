package overlay

import (
	"slices"

	"github.com/watchmirror/cache"
)

// Indexer returns the overlay as a cache.Indexer, for code such as generated listers. Its reads
// show observed writes; its writes change the store.
func (o *Overlay[T]) Indexer() cache.Indexer { return indexer{o.core.store, o.core} }

// indexer is a store with observed writes. It has no Snapshot method, because the embedded store's
// would not show them.
type indexer struct {
	cache.Indexer
	core *core
}

// List implements cache.Store.
func (i indexer) List() []any {
	list := []any{}
	i.core.view().each("", appendTo(&list))
	return list
}

func appendTo(list *[]any) func(string, any) bool {
	return func(_ string, obj any) bool {
		*list = append(*list, obj)
		return true
	}
}

// ListKeys implements cache.Store.
func (i indexer) ListKeys() []string {
	keys := []string{}
	i.core.view().each("", func(key string, _ any) bool {
		keys = append(keys, key)
		return true
	})
	return keys
}

// Get implements cache.Store.
func (i indexer) Get(obj any) (item any, exists bool, err error) {
	key, err := i.core.keyFunc(obj)
	if err != nil {
		return nil, false, cache.KeyError{Obj: obj, Err: err}
	}
	return i.GetByKey(key)
}

// GetByKey implements cache.Store.
func (i indexer) GetByKey(key string) (item any, exists bool, err error) {
	item, err = i.core.get(key)
	return item, item != nil, err
}

// Index implements cache.Indexer.
func (i indexer) Index(indexName string, obj any) ([]any, error) {
	v := i.core.view()
	if _, err := v.store.AllByIndex(indexName, ""); err != nil {
		return nil, err
	}
	values, err := valuesOf(indexName, i.GetIndexers()[indexName], obj)
	if err != nil {
		return nil, err
	}
	list := []any{}
	seen := map[string]bool{}
	for _, value := range values {
		_ = v.eachByIndex("", indexName, value, func(key string, obj any) bool {
			if !seen[key] {
				seen[key] = true
				list = append(list, obj)
			}
			return true
		})
	}
	return list, nil
}

// ByIndex implements cache.Indexer.
func (i indexer) ByIndex(indexName, indexedValue string) ([]any, error) {
	list := []any{}
	if err := i.core.view().eachByIndex("", indexName, indexedValue, appendTo(&list)); err != nil {
		return nil, err
	}
	return list, nil
}

// IndexKeys implements cache.Indexer.
func (i indexer) IndexKeys(indexName, indexedValue string) ([]string, error) {
	keys := []string{}
	err := i.core.view().eachByIndex("", indexName, indexedValue, func(key string, _ any) bool {
		keys = append(keys, key)
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues implements cache.Indexer.
func (i indexer) ListIndexFuncValues(indexName string) []string {
	values, err := i.core.view().indexValues("", indexName, func(any) bool { return true })
	if err != nil {
		return []string{}
	}
	return values
}
