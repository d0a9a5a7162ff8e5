// ThreadSafeStore, the store of client-go whose callers choose the keys. How does such a store
// differ from an Indexer, and where do the errors that its methods cannot return end?

package cache

import (
	"errors"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/watchmirror/cache/internal/loglines"
	"github.com/watchmirror/cache/internal/table"
)

// ThreadSafeStore is an Indexer whose callers choose the keys. An object that an Indexer would
// reject is reported to apimachinery's error handlers.
type ThreadSafeStore interface {
	// Add stores obj under key, whether or not something was there. Update does the same.
	Add(key string, obj any)
	Update(key string, obj any)
	// Delete removes the object under key, if there is one. DeleteWithObject does the same and
	// ignores obj.
	Delete(key string)
	DeleteWithObject(key string, obj any)
	Get(key string) (item any, exists bool)
	List() []any
	ListKeys() []string
	// Replace makes items the whole content and resourceVersion the version, in one step for
	// readers.
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

// NewThreadSafeStore is for code written for client-go; new code uses NewIndexer. Indices is
// ignored. It panics if one of the indexers is nil.
func NewThreadSafeStore(
	indexers Indexers, indices Indices, opts ...ThreadSafeStoreOption,
) ThreadSafeStore {
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
	_, _ = m.write(one, storeWrite{scope: m.scope})
	if one[0].prepared.err != nil {
		reportRefused(one)
	}
}

// changeUnder returns the change that puts obj under key.
func changeUnder(key string, obj any) change {
	c := change{received: received{kind: Updated, object: obj}}
	c.prepare()
	c.prepared.key = c.received.meta.key(key)
	if isNilPointer(obj) {
		c.prepared.fail(stageMetadata, errNilObject)
	}
	return c
}

// reportRefused reports changes whose errors cannot be returned, together: apimachinery's handlers
// sleep for each error.
func reportRefused(refused []change) {
	var errs []error
	for _, c := range refused[:min(10, len(refused))] {
		errs = append(errs, c.prepared.err)
	}
	if len(errs) == 0 {
		return
	}
	utilruntime.HandleErrorWithLogger(loglines.Background(), errors.Join(errs...),
		"Objects not stored", "count", len(refused))
}

// Delete removes the object under key.
func (m *threadSafeMap) Delete(key string) {
	one := [1]change{{prepared: prepared{key: table.KeyOf(key), deletes: true}}}
	_, _ = m.write(one[:], storeWrite{scope: m.scope})
}

// DeleteWithObject removes the object under key.
func (m *threadSafeMap) DeleteWithObject(key string, _ any) { m.Delete(key) }

// Get returns the object under key.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	return m.table.Get(key)
}

// Replace makes items the whole content.
func (m *threadSafeMap) Replace(items map[string]any, resourceVersion string) {
	store := &keyedStore{scope: m.scope}
	r := store.BeginReplace(ReplaceOptions{Staged: true, VersionsReset: true}).(*storeReplacement)
	for key, obj := range items {
		c := changeUnder(key, obj)
		c.prepared.index(m.indexers.Load(), &r.in.buffer)
		c.received = received{}
		if r.takesPart(&c) {
			r.staged.addOne(c)
		}
	}
	reportRefused(r.publish(resourceVersion))
}
