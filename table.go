package cache

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// table is entries by key with their indexes: pure data, without locks and
// without calls to user code. Its owner guards it.
type table struct {
	entries map[string]*entry
	// indices has one index for each position of the owner's indexerSet.
	indices []index
	// peak is the largest number of entries since the maps were made.
	peak int
}

// entry is an object in a table. Once it is there only values may change, and
// only by growing when an index is added.
type entry struct {
	key      string
	obj      any
	received Received
	// values are those of each index, by position, as they were when the entry
	// was made: what is removed from an index later is exactly what was added,
	// whatever has become of the object since.
	values [][]string
}

func newTable(indexes int) table {
	t := table{entries: map[string]*entry{}}
	for range indexes {
		t.indices = append(t.indices, index{})
	}
	return t
}

// put stores an entry in place of the one under its key, and returns that.
func (t *table) put(e *entry) (old *entry) {
	old = t.entries[e.key]
	t.entries[e.key] = e
	t.peak = max(t.peak, len(t.entries))
	for i, index := range t.indices {
		var before []string
		if old != nil {
			before = old.values[i]
		}
		if slices.Equal(before, e.values[i]) {
			continue
		}
		index.remove(e.key, before)
		index.add(e.key, e.values[i])
	}
	return old
}

// remove takes the entry under key out, and returns it.
func (t *table) remove(key string) (old *entry) {
	old = t.entries[key]
	if old == nil {
		return nil
	}
	delete(t.entries, key)
	for i, index := range t.indices {
		index.remove(key, old.values[i])
	}
	return old
}

// extend adds an entry's values for the newest indexes.
func (t *table) extend(e *entry, more [][]string) {
	for _, values := range more {
		t.indices[len(e.values)].add(e.key, values)
		e.values = append(e.values, values)
	}
}

// shrink gives memory back after most entries have gone, for a Go map does not.
// At least three quarters of the peak were removed since the last time, so the
// copying costs each removal a constant.
func (t *table) shrink() {
	const worthIt = 1024
	if t.peak <= worthIt || len(t.entries) >= t.peak/4 {
		return
	}
	smaller := newTable(len(t.indices))
	for _, e := range t.entries {
		smaller.put(e)
	}
	*t = smaller
}

// objects returns the objects under the keys, which are the table's own.
func (t *table) objects(keys sets.Set[string]) []any {
	list := make([]any, 0, len(keys))
	for key := range keys {
		list = append(list, t.entries[key].obj)
	}
	return list
}

func (i index) add(key string, values []string) {
	for _, value := range values {
		keys := i[value]
		if keys == nil {
			keys = sets.Set[string]{}
			i[value] = keys
		}
		keys.Insert(key)
	}
}

func (i index) remove(key string, values []string) {
	for _, value := range values {
		keys := i[value]
		keys.Delete(key)
		if len(keys) == 0 {
			delete(i, value)
		}
	}
}

// keysOfAny returns the keys that have at least one of the values.
func (i index) keysOfAny(values []string) sets.Set[string] {
	if len(values) == 1 {
		return i[values[0]]
	}
	union := sets.Set[string]{}
	for _, value := range values {
		for key := range i[value] {
			union.Insert(key)
		}
	}
	return union
}
