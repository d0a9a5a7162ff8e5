package cache

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
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

// threadSafeMap is a table behind a lock. Index values are computed before the
// lock is taken (see staged); under it there are only map operations.
type threadSafeMap struct {
	// indexers are read without the lock and set under it.
	indexers atomic.Pointer[indexerSet]

	mu    sync.RWMutex
	table table
	held  quarantine
	// whole is the scope of everything; mu guards those of views, too.
	whole scope
	// writes counts the batches that were applied. Who applies them may read it
	// without the lock.
	writes uint64
}

func newThreadSafeMap(indexers Indexers, opts ...ThreadSafeStoreOption) *threadSafeMap {
	for name, function := range indexers {
		mustHave(function != nil, fmt.Sprintf("NewThreadSafeStore: index %q has no function", name))
	}
	m := &threadSafeMap{table: newTable(len(indexers))}
	m.indexers.Store(newIndexerSet(indexers))
	for _, option := range opts {
		option(m)
	}
	return m
}

// Add puts obj under key.
func (m *threadSafeMap) Add(key string, obj any) { m.Update(key, obj) }

// Update puts obj under key.
func (m *threadSafeMap) Update(key string, obj any) {
	s := stageUnderKey(key, obj)
	m.write(s)
	reportUntaken(s)
}

// stageUnderKey is stage for an object that nobody has looked at yet.
func stageUnderKey(key string, obj any) *staged {
	s := stage(key, obj, receivedOf(obj))
	if isNilPointer(obj) {
		s.fail(StageMetadata, ErrNilObject)
	}
	return s
}

// Delete removes what is under key.
func (m *threadSafeMap) Delete(key string) { m.write(&staged{key: key}) }

// DeleteWithObject removes what is under key.
func (m *threadSafeMap) DeleteWithObject(key string, _ any) { m.Delete(key) }

// Replace makes items the whole content.
func (m *threadSafeMap) Replace(items map[string]any, resourceVersion string) {
	all := make([]*staged, 0, len(items))
	listed := make(sets.Set[string], len(items))
	for key, obj := range items {
		all = append(all, stageUnderKey(key, obj))
		listed.Insert(key)
	}
	m.lockFor(all...)
	for _, s := range all {
		m.takeLocked(s)
	}
	m.keepOnlyLocked(listed.Has)
	m.whole.version = resourceVersion
	m.mu.Unlock()
	reportUntaken(all...)
}

// reportUntaken reports the objects that could not be taken where there is
// nobody to return it to: in one report, for each of apimachinery's sleeps.
func reportUntaken(all ...*staged) {
	const named = 10
	var errs []error
	untaken := 0
	for _, s := range all {
		if s.err == nil {
			continue
		}
		if untaken++; untaken <= named {
			errs = append(errs, s.err)
		}
	}
	if untaken > 0 {
		utilruntime.HandleErrorWithLogger(klog.Background(), errors.Join(errs...), "Objects were not stored", "count", untaken)
	}
}

// Get returns what is under key.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if e := m.table.entries[key]; e != nil {
		return e.obj, true
	}
	return nil, false
}

// received returns what was recorded when the entry under key was received.
func (m *threadSafeMap) received(key string) (Received, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if e := m.table.entries[key]; e != nil {
		return e.received, true
	}
	return Received{}, false
}

// holds says whether this very entry is in the table.
func (m *threadSafeMap) holds(e *entry) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.entries[e.key] == e
}

// snapshot returns all entries.
func (m *threadSafeMap) snapshot() []*entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Values(m.table.entries))
}

// snapshotOfWrite returns all entries, and how many batches they are the outcome of.
func (m *threadSafeMap) snapshotOfWrite() snapshot {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s := snapshot{write: m.writes, entries: make([]*entry, 0, len(m.table.entries))}
	for _, e := range m.table.entries {
		s.entries = append(s.entries, e)
	}
	return s
}

// len is how many entries there are.
func (m *threadSafeMap) len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.table.entries)
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
	set := m.indexers.Load()
	at, err := set.position(indexName)
	if err != nil {
		return nil, err
	}
	values, err := distinctValues(set.functions[at], obj)
	if err != nil {
		return nil, fmt.Errorf("index %q: %w", indexName, err)
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.objects(m.table.indices[at].keysOfAny(values)), nil
}

// ByIndex returns the objects that have the value.
func (m *threadSafeMap) ByIndex(indexName, indexedValue string) ([]any, error) {
	at, err := m.indexers.Load().position(indexName)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.objects(m.table.indices[at][indexedValue]), nil
}

// entriesByIndex returns the entries that have the value.
func (m *threadSafeMap) entriesByIndex(indexName, indexedValue string) ([]*entry, error) {
	at, err := m.indexers.Load().position(indexName)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	keys := m.table.indices[at][indexedValue]
	list := make([]*entry, 0, len(keys))
	for key := range keys {
		list = append(list, m.table.entries[key])
	}
	return list, nil
}

// IndexKeys returns the keys of the objects that have the value, sorted.
func (m *threadSafeMap) IndexKeys(indexName, indexedValue string) ([]string, error) {
	at, err := m.indexers.Load().position(indexName)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	keys := m.table.indices[at][indexedValue].UnsortedList()
	m.mu.RUnlock()
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values that at least one object has.
func (m *threadSafeMap) ListIndexFuncValues(name string) []string {
	at, err := m.indexers.Load().position(name)
	if err != nil {
		return []string{}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.AppendSeq([]string{}, maps.Keys(m.table.indices[at]))
}

// GetIndexers returns a copy of the index functions.
func (m *threadSafeMap) GetIndexers() Indexers { return m.indexers.Load().indexers() }

// AddIndexers adds indexes.
func (m *threadSafeMap) AddIndexers(newIndexers Indexers) error { return m.addIndexers(newIndexers) }

// Resync does nothing.
func (m *threadSafeMap) Resync() error { return nil }
