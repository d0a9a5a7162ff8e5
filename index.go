package cache

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/table"
)

// Indexer is a Store that also finds objects by values computed from them, once, when they are stored. All methods may
// be called concurrently.
type Indexer interface {
	Store
	// Index returns the objects that share a value of the named index with obj, which need not be stored itself.
	Index(indexName string, obj any) ([]any, error)
	// IndexKeys returns the keys of the objects that have the value, sorted.
	IndexKeys(indexName, indexedValue string) ([]string, error)
	// ListIndexFuncValues returns the values that objects have, in no order; none if there is no such index.
	ListIndexFuncValues(indexName string) []string
	// ByIndex returns the objects that have the value, in no order.
	ByIndex(indexName, indexedValue string) ([]any, error)
	// GetIndexers returns a copy of the index functions by name.
	GetIndexers() Indexers
	// AddIndexers adds indexes and returns once they can be read. Readers and writers continue meanwhile. It fails, and
	// adds none, if a name is in use, or a function is nil or fails for a stored object.
	AddIndexers(newIndexers Indexers) error
}

// IndexFunc returns an object's values for one index. It must be deterministic, must not change the object, and may be
// called concurrently.
type IndexFunc func(obj any) ([]string, error)

// Indexers are index functions by name.
type Indexers map[string]IndexFunc

// Indices is a parameter type of NewThreadSafeStore, for compatibility.
type Indices map[string]index

// index has the keys of the objects with each value.
type index map[string]sets.Set[string]

// NamespaceIndex is the usual name for an index by namespace.
const NamespaceIndex string = "namespace"

// MetaNamespaceIndexFunc is the index function for an index by namespace.
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	var m metadata
	if err := m.read(obj); err != nil {
		return nil, err
	}
	return []string{m.namespace}, nil
}

// IndexFuncToKeyFuncAdapter returns a key function that calls an index function with one value for each object.
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

// indexerSet has the index functions of a store by their position in the table. A set never changes, so its address
// identifies the functions with which values were computed.
type indexerSet struct {
	names     []string
	functions []IndexFunc
}

// with returns a set with more indexes at the end.
func (s *indexerSet) with(indexers Indexers) *indexerSet {
	more := &indexerSet{slices.Clone(s.names), slices.Clone(s.functions)}
	// Sorted, so that the same one of two failing functions is reported each time.
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		more.names, more.functions = append(more.names, name), append(more.functions, indexers[name])
	}
	return more
}

// conflict fails if names are in use. The texts here and in position are client-go's: programs compare them.
func (s *indexerSet) conflict(indexers Indexers) error {
	if inUse := sets.New(s.names...).Intersection(sets.KeySet(indexers)); len(inUse) > 0 {
		return fmt.Errorf("indexer conflict: %v", inUse)
	}
	return nil
}

// position returns the position of the named index.
func (s *indexerSet) position(name string) (int, error) {
	at := slices.Index(s.names, name)
	if at < 0 {
		return 0, fmt.Errorf("Index with name %s does not exist", name)
	}
	return at, nil
}

// valueBuffer is reusable memory for the index values of several changes.
type valueBuffer struct {
	values [][]string
	texts  []string
}

// appendValues appends the object's values for an index, sorted and without duplicates. It copies them: the function may
// reuse its slice.
func (s *indexerSet) appendValues(texts []string, at int, obj any) ([]string, error) {
	values, err := indexValues(s.functions[at], obj)
	if err != nil {
		return nil, err
	}
	from := len(texts)
	if texts = append(texts, values...); len(values) > 1 {
		slices.Sort(texts[from:])
		texts = texts[:from+len(slices.Compact(texts[from:]))]
	}
	return texts, nil
}

// valuesOf returns an object's values for each index.
func (s *indexerSet) valuesOf(obj any, buffer *valueBuffer) (_ [][]string, err error) {
	first := len(buffer.values)
	buffer.values = slices.Grow(buffer.values, len(s.names))
	buffer.texts = slices.Grow(buffer.texts, len(s.names))
	for at, name := range s.names {
		from := len(buffer.texts)
		if buffer.texts, err = s.appendValues(buffer.texts, at, obj); err != nil {
			return nil, fmt.Errorf("index %q: %w", name, err)
		}
		buffer.values = append(buffer.values, buffer.texts[from:len(buffer.texts):len(buffer.texts)])
	}
	return buffer.values[first:len(buffer.values):len(buffer.values)], nil
}

// GetIndexers returns a copy of the index functions.
func (m *storage) GetIndexers() Indexers {
	set := m.indexers.Load()
	indexers := make(Indexers, len(set.names))
	for at, name := range set.names {
		indexers[name] = set.functions[at]
	}
	return indexers
}

// indexedObject is an object with its values for indexes that are being added.
type indexedObject struct {
	object any
	values [][]string
}

// AddIndexers adds indexes. Without a lock, it computes the values of all objects, then those of objects that were written
// meanwhile, until no more are missing.
func (m *storage) AddIndexers(newIndexers Indexers) error {
	for name, function := range newIndexers {
		if function == nil {
			return fmt.Errorf("index %q has no function: it is nil", name)
		}
	}
	added, known := (&indexerSet{}).with(newIndexers), map[table.Key]indexedObject{}
	for {
		if err := m.indexers.Load().conflict(newIndexers); err != nil { // before any function is called
			return err
		}
		for e := range m.table.Snapshot().Each {
			key, obj := e.Key(), e.Object()
			if table.Same(known[key].object, obj) {
				continue
			}
			values, err := added.valuesOf(obj, &valueBuffer{})
			if found, _ := m.table.Get(key); err != nil && table.Same(found, obj) {
				return fmt.Errorf("no index was added, because of object %q: %w", key.String(), err)
			} else if err == nil {
				known[key] = indexedObject{obj, values}
			}
		}
		if m.addComputed(newIndexers, known) {
			return nil
		}
	}
}

// addComputed adds indexes, unless the values of an object are missing, or a name has come into use.
func (m *storage) addComputed(added Indexers, known map[table.Key]indexedObject) (done bool) {
	m.writing.Lock()
	defer m.writing.Unlock()
	before, stored := m.indexers.Load(), m.table.Snapshot()
	if before.conflict(added) != nil {
		return false
	}
	for e := range stored.Each {
		if !table.Same(known[e.Key()].object, e.Object()) {
			return false
		}
	}
	m.table.Begin(wholeStore)
	m.table.AddIndexes(len(added))
	for e := range stored.Each {
		key := e.Key()
		number := m.table.Find(key, m.table.Seek(key)).Number
		for i, values := range known[key].values {
			m.table.Index(len(before.names)+i, number, values)
		}
	}
	m.table.Commit(nil)
	m.indexers.Store(before.with(added))
	return true
}
