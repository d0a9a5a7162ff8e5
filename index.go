package cache

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Indexer is a Store that also finds objects by values computed from them.
//
// An index has a name and a function. The function's values for an object are
// computed once, when the object is stored, and kept with it: an index is never
// at odds with the store, even where a reader wrongly changed a shared object.
// All methods may be called concurrently and answer from memory.
type Indexer interface {
	Store

	// Index returns the objects that share a value of the named index with obj,
	// which need not be stored itself. It fails if there is no such index or if
	// the index function fails for obj.
	Index(indexName string, obj any) ([]any, error)
	// IndexKeys returns the keys of the objects that have the value, sorted.
	IndexKeys(indexName, indexedValue string) ([]string, error)
	// ListIndexFuncValues returns the values that at least one object has, in
	// no order; none if there is no such index.
	ListIndexFuncValues(indexName string) []string
	// ByIndex returns the objects that have the value, in no order.
	ByIndex(indexName, indexedValue string) ([]any, error)

	// GetIndexers returns the index functions by name. The map is a copy.
	GetIndexers() Indexers
	// AddIndexers adds indexes, over what is stored too. It calls the functions
	// for every object, while readers and writers go on, and returns once the
	// indexes are there. It fails, and changes nothing, if a name is taken, a
	// function is nil, or a function fails for an object.
	AddIndexers(newIndexers Indexers) error
}

// IndexFunc returns an object's values for one index: none, one or several. It
// must be deterministic, must not change the object, and may be called
// concurrently. If it fails, or panics, the object is not stored.
type IndexFunc func(obj any) ([]string, error)

// Indexers are index functions by the name of their index.
type Indexers map[string]IndexFunc

// Indices are indexes by name. The type exists for NewThreadSafeStore's sake.
type Indices map[string]index

// index has, for each value, the keys of the objects that have it. There are no
// empty sets.
type index map[string]sets.Set[string]

// NamespaceIndex is the usual name for an index by namespace.
const NamespaceIndex string = "namespace"

// MetaNamespaceIndexFunc is the index function for an index by namespace. Its
// value for objects without a namespace is "".
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	if isNilPointer(obj) {
		return nil, nilWithoutMeta(obj)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, withoutMeta(err)
	}
	return []string{accessor.GetNamespace()}, nil
}

// IndexFuncToKeyFuncAdapter makes a key function of an index function that
// returns exactly one value, different for each object. The key function fails
// where there are none or several.
func IndexFuncToKeyFuncAdapter(indexFunc IndexFunc) KeyFunc {
	return func(obj any) (string, error) {
		values, err := indexFunc(obj)
		switch {
		case err != nil:
			return "", err
		case len(values) == 0:
			return "", errors.New("unexpected empty indexKeys")
		case len(values) > 1:
			return "", fmt.Errorf("too many keys: %v", values)
		}
		return values[0], nil
	}
}
