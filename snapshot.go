package cache

import (
	"iter"
	"slices"
	"sync"

	"github.com/watchmirror/cache/internal/table"
)

// Snapshot is all that a store held at one moment: objects, indexes and version belong
// together, whatever is written meanwhile. It never changes, may be used concurrently, and
// is good for as long as it is kept. Taking one takes no longer the more there is. Keeping
// one keeps the objects that it shows, and a copy of some kilobytes for each that has
// changed since, up to as much again as the store has for itself.
//
// The objects are shared, and must not be changed. The zero value is that of an empty store
// without indexes.
type Snapshot struct {
	table    *table.Snapshot
	indexers *indexerSet
}

// emptySnapshot is what the zero Snapshot stands for.
var emptySnapshot = sync.OnceValue(func() Snapshot { return newThreadSafeMap(nil).Snapshot() })

// orEmpty makes a zero value one that can be asked.
func (s Snapshot) orEmpty() Snapshot {
	if s.table == nil {
		return emptySnapshot()
	}
	return s
}

// Snapshotter is implemented by what NewStore, NewIndexer and NewThreadSafeStore make, and
// by every SharedIndexInformer of this package.
type Snapshotter interface {
	// Snapshot is what the store holds now.
	Snapshot() Snapshot
}

var (
	_ Snapshotter = (*cache)(nil)
	_ Snapshotter = (*threadSafeMap)(nil)
	_ Snapshotter = (*sharedIndexInformer)(nil)
)

// SnapshotOf takes a snapshot of a store, of an indexer, or of what an informer holds; false
// if it is not one of this package, or only the part of one that InNamespace made. For an
// Informer, which has a Snapshot of its own, ask its Shared.
func SnapshotOf(store any) (Snapshot, bool) {
	s, ok := store.(Snapshotter)
	if !ok || isNilPointer(store) {
		return Snapshot{}, false
	}
	return s.Snapshot(), true
}

// Snapshot is what the store holds now.
func (c *cache) Snapshot() Snapshot { return c.storage.Snapshot() }

// Snapshot is what the store holds now. The indexers go first: a table may have more
// indexes than they know of, never fewer.
func (m *threadSafeMap) Snapshot() Snapshot {
	indexers := m.indexers.Load()
	return Snapshot{m.table.Snapshot(), indexers}
}

// ResourceVersion is the version up to which it holds everything that the source had; empty
// if no list had been applied.
func (s Snapshot) ResourceVersion() string { return s.orEmpty().table.Version }

// Len is how many objects there are.
func (s Snapshot) Len() int { return s.orEmpty().table.Len() }

// Get returns the object under key. It does not say whether one is missing because it was
// quarantined, as GetByKey of a store does.
func (s Snapshot) Get(key string) (obj any, exists bool) {
	e, exists := s.orEmpty().table.Get(table.KeyOf(key))
	if !exists {
		return nil, false
	}
	return e.Object(), true
}

// Objects goes through the objects, in no order. Nothing is copied.
func (s Snapshot) Objects() iter.Seq[any] {
	// Not the table's method itself, which would be allocated.
	return func(yield func(any) bool) { s.orEmpty().table.Objects(yield) }
}

// All goes through the objects with their keys, in no order. A key that is an object's
// namespace and name is made for it, some at a time: who keeps one keeps those.
func (s Snapshot) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		s.orEmpty().table.EachWithKey(func(key string, e table.Entry) bool { return yield(key, e.Object()) })
	}
}

// List returns all objects, in no order. The slice is the caller's.
func (s Snapshot) List() []any { return s.orEmpty().table.AppendObjects(make([]any, 0, s.Len())) }

// ByIndex returns the objects that have a value in the named index, in no order. The slice is
// the caller's. It fails if there is no such index.
func (s Snapshot) ByIndex(index, value string) ([]any, error) {
	s = s.orEmpty()
	at, err := s.indexers.position(index)
	if err != nil {
		return nil, err
	}
	return s.table.ObjectsHaving(at, value), nil
}

// AllByIndex goes through the objects that have a value in the named index, in no order.
// Nothing is copied. It fails if there is no such index.
func (s Snapshot) AllByIndex(index, value string) (iter.Seq[any], error) {
	at, err := s.orEmpty().indexers.position(index)
	if err != nil {
		return nil, err
	}
	return func(yield func(any) bool) {
		s.table.Having(at, value, func(e table.Entry) bool { return yield(e.Object()) })
	}, nil
}

// IndexValues returns the values that at least one object has in the named index, in no
// order. It fails if there is no such index.
func (s Snapshot) IndexValues(index string) ([]string, error) {
	s = s.orEmpty()
	at, err := s.indexers.position(index)
	if err != nil {
		return nil, err
	}
	all, count := s.table.Values(at)
	return slices.AppendSeq(make([]string, 0, count), all), nil
}

// havingAny are the objects that have any of some values: one that has several of them is
// there once.
func (s Snapshot) havingAny(at int, values []string) []any {
	if len(values) == 1 {
		return s.table.ObjectsHaving(at, values[0])
	}
	list, met := []any{}, map[table.Entry]bool{}
	for _, value := range values {
		s.table.Having(at, value, func(e table.Entry) bool {
			if !met[e] {
				met[e] = true
				list = append(list, e.Object())
			}
			return true
		})
	}
	return list
}
