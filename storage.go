package cache

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/table"
)

// storage is the data of every store of this package. Writers first prepare their changes (intake.go), which calls user
// functions, and then apply them in one write, which calls none. Readers see all of a write or nothing.
//
// Lock order: writing, the table's, the quarantine's.
type storage struct {
	table *table.Table
	// indexers is set under writing and read without a lock.
	indexers   atomic.Pointer[indexerSet]
	quarantine quarantinePart

	// writing is held for the duration of a write.
	writing sync.Mutex

	// applied is the version that readers see, logged the version that handlers can read from the log.
	applied, logged atomic.Pointer[string]
	whole           scope
	// views has a store for each namespace. They are never removed. All scopes change under the table's lock.
	views map[string]*keyedStore

	// versionMoved wakes calls that wait for a version.
	versionMoved broadcast

	// gauge is the metric of the version, or nil.
	gauge atomic.Pointer[versionGauge]
}

func newStorage(indexers Indexers) *storage {
	set, err := (&indexerSet{}).with(indexers)
	mustHave(err == nil, fmt.Sprint(err))
	m := &storage{quarantine: quarantinePart{&quarantine{}, byStore, ""}, views: map[string]*keyedStore{}}
	m.table = table.New(len(indexers), func() string { return *m.applied.Load() })
	m.whole.storage = m
	m.whole.version.Store(new(string))
	m.applied.Store(m.whole.version.Load())
	m.logged.Store(m.whole.version.Load())
	m.indexers.Store(set)
	return m
}

// newest returns the origin of the newest known state of a key: of the quarantined one or, if there is none with a version,
// of the stored one.
func (m *storage) newest(key table.Key, stored table.Origin) table.Origin {
	if m.quarantine.any() {
		quarantined, _ := m.quarantine.entry(key)
		return quarantined.originOr(stored)
	}
	return stored
}

// storeWrite is a write. It calls no user function.
type storeWrite struct {
	// version becomes that of scope, unless it is empty. If setsVersion, an empty one does, too.
	scope       *scope
	version     string
	setsVersion bool
	// events is true if changes that are older than the stored states are refused.
	events bool
	// list is the list that is written, feed publishes the changes. Either may be nil.
	list *storeReplacement
	feed *feed
}

// begin locks the store until end.
func (m *storage) begin(w *storeWrite, changes []change) {
	for set := m.indexers.Load(); ; set = m.indexers.Load() {
		for i := range changes {
			changes[i].index(set, &valueBuffer{})
		}
		m.writing.Lock()
		if m.indexers.Load() == set {
			break
		}
		m.writing.Unlock() // an index was announced or added
	}
	weight := 0
	if w.setsVersion && w.list != nil && (w.list.marks.Missing() > 0 || m.quarantine.any()) {
		weight = table.InPlace + 1 // the end of the list looks at all of these
	}
	for i := range changes {
		c := &changes[i]
		c.place = m.table.Seek(c.key)
		weight += m.table.Weight(c.place, c.values)
	}
	m.table.Begin(weight)
}

// apply applies a change and records the result in it. A change that could not be prepared is quarantined, and the
// previous state stays. The error is that of an event that is too old.
func (m *storage) apply(w *storeWrite, c *change) error {
	at := m.table.Find(c.key, c.place)
	if w.events {
		if err := c.regression(m.newest(c.key, at.Origin)); err != nil {
			return err
		}
	}
	c.existed, c.old = at.Exists, at.Object
	switch {
	case c.unchanged:
		return nil
	case c.err != nil:
		if w.list != nil && c.set != nil { // it fails for an index that was added meanwhile
			w.list.refuse(c)
		}
		m.quarantine.addChange(c)
		return nil
	case w.list != nil && c.origin.Same(at.Origin) && w.list.alreadyListed(c, at):
		c.unchanged = true
		return nil
	}
	if m.quarantine.any() && (w.list == nil || !w.list.retained.Has(c.key)) {
		m.quarantine.release(c.key)
	}
	switch {
	case c.kind != Deleted:
		c.applied, c.recreated = true, c.origin.Recreates(at.Origin)
		at.Number, at.Exists = m.table.Put(c.key, at, c.object, c.origin, c.values), true
		if w.list != nil { // its Commit deletes unconfirmed entries
			w.list.marks.Confirm(c.key, at)
		}
	case at.Exists:
		m.table.Remove(at)
		if c.applied = true; c.object == nil {
			c.object = DeletedFinalStateUnknown{Key: c.key.String(), Obj: c.old}
		}
	}
	return nil
}

// end publishes the write with its version, and appends the changes to the log before the next write can begin.
func (m *storage) end(w *storeWrite, changes []change) {
	m.table.Commit(func() {
		if w.version != "" || w.setsVersion {
			version := new(w.version)
			w.scope.version.Store(version)
			if len(m.views) > 0 {
				version = m.lowest()
			}
			m.applied.Store(version)
		}
	})
	if w.feed != nil {
		w.feed.publish(changes, w.list != nil && w.list.initial, m.logged.Load())
	}
	m.logged.Store(m.applied.Load())
	m.writing.Unlock()
	if m.gauge.Load() != nil {
		m.showVersion()
	}
	if m.versionMoved.next.Load() != nil {
		m.versionMoved.wake()
	}
}

// write applies prepared changes with their versions. It stops at an event that is older than the stored state, and returns
// its error and the number of changes before it.
func (m *storage) write(changes []change, w storeWrite) (applied int, err error) {
	m.begin(&w, changes)
	for ; applied < len(changes); applied++ {
		if err = m.apply(&w, &changes[applied]); err != nil {
			break
		}
		w.version = cmp.Or(changes[applied].version, w.version)
	}
	m.end(&w, changes[:applied])
	return applied, err
}

// live reads the current content.
func (m *storage) live() Reader[any] { return Reader[any]{store: m} }

// Index returns the objects that share a value with obj.
func (m *storage) Index(indexName string, obj any) ([]any, error) {
	s, err := m.live().having(indexName, "")
	if err != nil {
		return nil, err
	}
	values, err := s.indexers.appendValues(nil, s.index, obj)
	if err != nil {
		return nil, err
	}
	list, seen := []any{}, map[table.Entry]bool{} // objects may share several values
	for _, value := range values {
		s.value = value
		for e, object := range s.each {
			if !seen[e] {
				seen[e] = true
				list = append(list, object)
			}
		}
	}
	return list, nil
}

// ByIndex returns the objects that have the value.
func (m *storage) ByIndex(indexName, indexedValue string) ([]any, error) {
	return m.live().ByIndex(indexName, indexedValue)
}

// IndexKeys returns the keys of the objects that have the value, sorted.
func (m *storage) IndexKeys(indexName, indexedValue string) ([]string, error) {
	having, err := m.live().AllByIndex(indexName, indexedValue)
	if err != nil {
		return nil, err
	}
	keys := []string{}
	for key := range having {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys, nil
}

// ListIndexFuncValues returns the values that at least one object has.
func (m *storage) ListIndexFuncValues(indexName string) []string {
	values, _ := m.live().IndexValues(indexName)
	return values
}

// view is a store at one point in time.
type view struct {
	indexers *indexerSet
	table    *table.Snapshot
}

func (m *storage) view() view {
	return view{m.indexers.Load(), m.table.Snapshot()} // in this order: then the snapshot has these indexes
}

// Snapshotter is implemented by this package's stores and informers.
type Snapshotter interface{ Snapshot() Reader[any] }

// Snapshot implements Snapshotter.
func (m *storage) Snapshot() Reader[any] { return m.live().Snapshot() }

// ThreadSafeStore is an Indexer whose callers choose the keys. An object that an Indexer would reject is reported to
// apimachinery's error handlers.
type ThreadSafeStore interface {
	// Add stores obj under key, whether or not something was there. Update does the same.
	Add(key string, obj any)
	Update(key string, obj any)
	// Delete removes the object under key, if there is one. DeleteWithObject does the same and ignores obj.
	Delete(key string)
	DeleteWithObject(key string, obj any)
	Get(key string) (item any, exists bool)
	List() []any
	ListKeys() []string
	// Replace makes items the whole content and resourceVersion the version, in one step for readers.
	Replace(items map[string]any, resourceVersion string)
	Index(indexName string, obj any) ([]any, error)
	IndexKeys(indexName, indexedValue string) ([]string, error)
	Bookmark(rv string)
	LastStoreSyncResourceVersion() string
	ListIndexFuncValues(name string) []string
	ByIndex(indexName, indexedValue string) ([]any, error)
	GetIndexers() Indexers
	AddIndexers(newIndexers Indexers) error
	Resync() error
}

// ThreadSafeStoreOption is an option of NewThreadSafeStore.
type ThreadSafeStoreOption = func(*threadSafeMap)

// threadSafeMap is a storage whose callers choose the keys.
type threadSafeMap struct {
	*scope
	*storage
}

// NewThreadSafeStore is for code written for client-go; new code uses NewIndexer. Indices is ignored. It panics if one
// of the indexers is nil.
func NewThreadSafeStore(indexers Indexers, indices Indices, opts ...ThreadSafeStoreOption) ThreadSafeStore {
	s := newStorage(indexers)
	m := &threadSafeMap{&s.whole, s}
	for _, option := range opts {
		option(m)
	}
	return m
}

// Add puts obj under key.
func (m *threadSafeMap) Add(key string, obj any) { m.Update(key, obj) }

// Update puts obj under key.
func (m *threadSafeMap) Update(key string, obj any) {
	one := []change{changeUnder(key, obj)}
	if m.write(one, storeWrite{scope: m.scope}); one[0].err != nil {
		reportRefused(one)
	}
}

// changeUnder returns the change that puts obj under key.
func changeUnder(key string, obj any) change {
	c := change{kind: Updated, object: obj}
	c.meta.read(obj)
	c.key, c.origin = c.meta.key(key), originOf(c.meta.received)
	if isNilPointer(obj) {
		c.fail(stageMetadata, errNilObject)
	}
	return c
}

// reportRefused reports changes whose errors cannot be returned, together: apimachinery's handlers sleep for each error.
func reportRefused(refused []change) {
	var errs []error
	for _, c := range refused[:min(10, len(refused))] {
		errs = append(errs, c.err)
	}
	if len(errs) > 0 {
		utilruntime.HandleErrorWithLogger(klog.Background(), errors.Join(errs...), "Objects not stored", "count", len(refused))
	}
}

// Delete removes the object under key.
func (m *threadSafeMap) Delete(key string) {
	m.write([]change{{kind: Deleted, key: table.KeyOf(key)}}, storeWrite{scope: m.scope})
}

// DeleteWithObject removes the object under key.
func (m *threadSafeMap) DeleteWithObject(key string, _ any) { m.Delete(key) }

// Get returns the object under key.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	return m.table.Get(table.KeyOf(key))
}

// Replace makes items the whole content.
func (m *threadSafeMap) Replace(items map[string]any, resourceVersion string) {
	r := (&keyedStore{scope: m.scope}).BeginReplace(ReplaceOptions{VersionsReset: true}).(*storeReplacement)
	for key, obj := range items {
		c := changeUnder(key, obj)
		c.index(m.indexers.Load(), &r.in.buffer)
		r.stage(&c)
	}
	reportRefused(r.publish(resourceVersion))
}
