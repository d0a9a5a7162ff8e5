package cache

import (
	"errors"
	"slices"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/table"
)

// ThreadSafeStore is an Indexer whose keys are said by the caller, who may use
// any string, the empty one too. All methods may be called concurrently and
// answer from memory; objects are shared and must not be changed.
//
// Its writing methods return nothing. An object that the stores of this package
// cannot take, because it is nil or an index function fails for it, is reported
// through apimachinery's error handlers, and the state that was there before
// stays.
type ThreadSafeStore interface {
	// Add puts obj under key, whether or not something was there before.
	Add(key string, obj any)
	// Update does the same.
	Update(key string, obj any)
	// Delete removes what is under key, if there is anything.
	Delete(key string)
	// DeleteWithObject does the same. In client-go obj moves the version; here
	// it is not looked at.
	DeleteWithObject(key string, obj any)
	// Get returns what is under key.
	Get(key string) (item any, exists bool)
	// List and ListKeys are as in Store.
	List() []any
	ListKeys() []string
	// Replace makes items the whole content and resourceVersion the version, in
	// one step for readers. The map is not kept.
	Replace(items map[string]any, resourceVersion string)
	// Index, IndexKeys, ListIndexFuncValues, ByIndex, GetIndexers and
	// AddIndexers are as in Indexer, Bookmark and LastStoreSyncResourceVersion
	// as in Store.
	Index(indexName string, obj any) ([]any, error)
	IndexKeys(indexName, indexedValue string) ([]string, error)
	Bookmark(rv string)
	LastStoreSyncResourceVersion() string
	ListIndexFuncValues(name string) []string
	ByIndex(indexName, indexedValue string) ([]any, error)
	GetIndexers() Indexers
	AddIndexers(newIndexers Indexers) error
	// Resync does nothing.
	//
	// Deprecated: it does nothing.
	Resync() error
}

// ThreadSafeStoreOption is an option of NewThreadSafeStore.
type ThreadSafeStoreOption = func(*threadSafeMap)

// NewThreadSafeStore makes an empty ThreadSafeStore. Indices has client-go's place
// among the parameters and is not looked at: a store makes its own. It panics if
// one of the indexers is nil.
func NewThreadSafeStore(indexers Indexers, indices Indices, opts ...ThreadSafeStoreOption) ThreadSafeStore {
	return newThreadSafeMap(indexers, opts...)
}

// Add puts obj under key.
func (m *threadSafeMap) Add(key string, obj any) { m.Update(key, obj) }

// Update puts obj under key.
func (m *threadSafeMap) Update(key string, obj any) {
	one := m.oneChange()
	defer m.put(one)
	c := &one.changes[0]
	c.stage(key, obj)
	c.index(m.indexers.Load())
	_ = m.write(one)
	reportUntaken(c.err)
}

// stage makes c the change that puts an object under a key that the caller says.
func (c *change) stage(key string, obj any) {
	c.says.read(obj)
	c.kind, c.object, c.key, c.origin = Updated, obj, c.says.key(key), originOf(c.says.received)
	if isNilPointer(obj) {
		c.fail(StageMetadata, ErrNilObject)
	}
}

// Delete removes what is under key.
func (m *threadSafeMap) Delete(key string) { m.remove(table.KeyOf(key)) }

// DeleteWithObject removes what is under key.
func (m *threadSafeMap) DeleteWithObject(key string, _ any) { m.Delete(key) }

// Replace makes items the whole content.
func (m *threadSafeMap) Replace(items map[string]any, resourceVersion string) {
	changes := make([]change, 0, len(items))
	for key, obj := range items {
		changes = append(changes, change{})
		changes[len(changes)-1].stage(key, obj)
	}
	m.lockIndexed(changes)
	m.table.EachKey(func(_ uint32, key table.Key) {
		if _, listed := items[key.String()]; !listed {
			changes = append(changes, change{kind: Deleted, key: key})
		}
	})
	w := storeWrite{m, m.table.Begin(m.weightOf(changes))}
	for i := range changes {
		w.apply(&changes[i])
	}
	m.quarantined.releaseIf(func(key string) bool { _, listed := items[key]; return !listed })
	w.commit(versionMove{scope: &m.whole, version: resourceVersion, listed: true})
	var failures []*ObjectError
	for i := range changes {
		if err := changes[i].err; err != nil {
			failures = append(failures, err)
		}
	}
	reportUntaken(failures...)
}

// reportUntaken reports the objects that could not be taken where there is
// nobody to return it to: in one report, for each of apimachinery's sleeps.
func reportUntaken(failures ...*ObjectError) {
	const named = 10
	var errs []error
	for _, failure := range failures[:min(named, len(failures))] {
		if failure != nil {
			errs = append(errs, failure)
		}
	}
	if len(errs) > 0 {
		utilruntime.HandleErrorWithLogger(klog.Background(), errors.Join(errs...), "Objects were not stored", "count", len(failures))
	}
}

// Get returns what is under key.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	found, exists := m.table.GetText(key)
	return found.Object, exists
}

// List returns all objects.
func (m *threadSafeMap) List() []any { return m.listIn(&m.whole) }

// ListKeys returns all keys.
func (m *threadSafeMap) ListKeys() []string { return m.listKeysIn(&m.whole) }

// LastStoreSyncResourceVersion returns the applied version.
func (m *threadSafeMap) LastStoreSyncResourceVersion() string { return m.versionOf(&m.whole) }

// Bookmark sets the applied version.
func (m *threadSafeMap) Bookmark(rv string) { m.setVersion(&m.whole, rv) }

// Index returns the objects that share a value with obj.
func (m *threadSafeMap) Index(indexName string, obj any) ([]any, error) {
	s := m.Snapshot()
	at, err := s.indexers.position(indexName)
	if err != nil {
		return nil, err
	}
	values, err := s.indexers.distinctValues(at, obj, nil)
	if err != nil {
		return nil, err
	}
	return s.havingAny(at, values), nil
}

// ByIndex returns the objects that have the value.
func (m *threadSafeMap) ByIndex(indexName, indexedValue string) ([]any, error) {
	return m.Snapshot().ByIndex(indexName, indexedValue)
}

// IndexKeys returns the keys of the objects that have the value, sorted.
func (m *threadSafeMap) IndexKeys(indexName, indexedValue string) ([]string, error) {
	s := m.Snapshot()
	at, err := s.indexers.position(indexName)
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, s.table.HavingLen(at, indexedValue))
	s.table.Having(at, indexedValue, func(e table.Entry) bool {
		keys = append(keys, e.Key().String())
		return true
	})
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values that at least one object has.
func (m *threadSafeMap) ListIndexFuncValues(name string) []string {
	values, err := m.Snapshot().IndexValues(name)
	if err != nil {
		return []string{}
	}
	return values
}

// GetIndexers returns a copy of the index functions.
func (m *threadSafeMap) GetIndexers() Indexers { return m.indexers.Load().indexers() }

// AddIndexers adds indexes.
func (m *threadSafeMap) AddIndexers(newIndexers Indexers) error { return m.addIndexers(newIndexers) }

// Resync does nothing.
func (m *threadSafeMap) Resync() error { return nil }
