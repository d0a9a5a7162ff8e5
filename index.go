// Index functions of a store: their set, and the values that they compute for an object. Which
// values has an object in each index? The index itself is in internal/table.

package cache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/table"
)

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

// IndexFuncToKeyFuncAdapter returns a key function that calls an index function with one value for
// each object.
func IndexFuncToKeyFuncAdapter(indexFunc IndexFunc) KeyFunc {
	return func(obj any) (string, error) {
		values, err := indexFunc(obj)
		if err != nil {
			return "", err
		}
		if len(values) == 0 {
			return "", errors.New("unexpected empty indexKeys")
		}
		if len(values) > 1 {
			return "", fmt.Errorf("too many keys: %v", values)
		}
		return values[0], nil
	}
}

// indexerSet has the index functions of a store by their position in the table. A set never
// changes, so its address identifies the functions with which values were computed.
type indexerSet struct {
	names     []string
	functions []IndexFunc
	// additions have the indexes that are being added. Each write computes the values of its
	// objects for them, too.
	additions []*indexerSet
	// computed has, in an addition, the computedValues of each object that was stored when the
	// addition began, or has been written since, by table.Identity.
	computed sync.Map
}

// computedValues are an object's values for the indexes of an addition, or why there are none.
type computedValues struct {
	values [][]string
	err    error
}

// with returns a set with more indexes at the end. It fails if a name is in use, or has no
// function. The texts here and in position are client-go's: programs compare them.
func (set *indexerSet) with(indexers Indexers) (*indexerSet, error) {
	inUse := sets.New(set.names...).Intersection(sets.KeySet(indexers))
	if len(inUse) > 0 {
		return nil, fmt.Errorf("indexer conflict: %v", inUse)
	}
	more := &indexerSet{
		names:     slices.Clone(set.names),
		functions: slices.Clone(set.functions),
		additions: set.additions,
	}
	// Sorted, so that the same one of two failing functions is reported each time.
	for _, name := range slices.Sorted(maps.Keys(indexers)) {
		if indexers[name] == nil {
			return nil, fmt.Errorf("index %q has no function", name)
		}
		more.names = append(more.names, name)
		more.functions = append(more.functions, indexers[name])
	}
	return more, nil
}

// position returns the position of the named index.
func (set *indexerSet) position(name string) (int, error) {
	at := slices.Index(set.names, name)
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

// valueBuffers has empty buffers for single changes.
var valueBuffers = sync.Pool{New: func() any { return &valueBuffer{} }}

// emptied returns the buffer without its values, which it does not retain.
func (b valueBuffer) emptied() valueBuffer {
	clear(b.texts)
	return valueBuffer{values: b.values[:0], texts: b.texts[:0]}
}

// appendValues appends the object's values for an index, sorted and without duplicates. It copies
// them: the function may reuse its slice.
func (set *indexerSet) appendValues(texts []string, at int, obj any) ([]string, error) {
	values, err := indexValues(set.functions[at], obj)
	if err != nil {
		return nil, err
	}
	first := len(texts)
	texts = append(texts, values...)
	if len(values) > 1 {
		slices.Sort(texts[first:])
		distinct := slices.Compact(texts[first:])
		texts = texts[:first+len(distinct)]
	}
	return texts, nil
}

// valuesOf returns an object's values for each index, and computes those for indexes that are being
// added.
func (set *indexerSet) valuesOf(obj any, buffer *valueBuffer) ([][]string, error) {
	first := len(buffer.values)
	buffer.values = slices.Grow(buffer.values, len(set.names))
	buffer.texts = slices.Grow(buffer.texts, len(set.names))
	for at, name := range set.names {
		from := len(buffer.texts)
		texts, err := set.appendValues(buffer.texts, at, obj)
		buffer.texts = texts
		if err != nil {
			return nil, fmt.Errorf("index %q: %w", name, err)
		}
		buffer.values = append(buffer.values, slices.Clip(texts[from:]))
	}
	for _, addition := range set.additions {
		addition.compute(obj)
	}
	return slices.Clip(buffer.values[first:]), nil
}

// compute computes the values of an object for an addition.
func (set *indexerSet) compute(obj any) {
	values, err := set.valuesOf(obj, &valueBuffer{})
	set.computed.Store(table.Identity(obj), computedValues{values, err})
}

// computedFor returns what compute has computed, empty if it was not called.
func (set *indexerSet) computedFor(obj any) computedValues {
	computed, _ := set.computed.Load(table.Identity(obj))
	values, _ := computed.(computedValues)
	return values
}
