// The stores that programs make: Store and Indexer, the keys of their objects, and views of one
// namespace. What do the methods promise, and which key has an object?

package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/watchmirror/cache/internal/table"
)

// Store holds the newest state of each object under its key. All methods may be called concurrently
// and read from memory. Objects are shared and must not be changed. The returned slices are the
// caller's.
//
// An object whose key, transform or index values fail is rejected: the method returns a KeyError or
// *ObjectError, and its previous state stays. This package's stores implement Snapshotter and
// Replacer.
type Store interface {
	// Add stores obj under its key, whether or not something was there. Update does the same.
	Add(obj any) error
	Update(obj any) error
	// Delete removes the object under obj's key, if there is one.
	Delete(obj any) error
	// List and ListKeys return all objects or keys, in no order.
	List() []any
	ListKeys() []string
	// LastStoreSyncResourceVersion returns the applied version: the store has all changes up to it.
	// It is empty until a list was applied. Unlike client-go's, Add, Update and Delete do not move
	// it.
	LastStoreSyncResourceVersion() string
	// Bookmark sets the applied version.
	Bookmark(rv string)
	// Get returns the object under obj's key, with the errors of GetByKey, and a KeyError if obj
	// has no key.
	Get(obj any) (item any, exists bool, err error)
	// GetByKey returns the object under key. The error is nil, or wraps ErrQuarantined: its only
	// state is quarantined.
	GetByKey(key string) (item any, exists bool, err error)
	// Replace makes the list the whole content and resourceVersion the applied version, in one step
	// for readers. The store owns the slice. An object with the UID and resource version last
	// received under its key stays as it is, pointer included. The error joins those of rejected
	// objects; all others are stored.
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// keyedStore is a scope with a key function, which fails for an object outside the scope.
type keyedStore struct {
	*scope
	keyer
	transformer TransformFunc
}

// keyer makes the keys of a store or queue. If byName is true (see isByName), the keys are
// namespace/name, and keyFunc is called only for an object without a name.
type keyer struct {
	keyFunc KeyFunc
	byName  bool
}

// cache is a whole store with its indexes and snapshots.
type cache struct {
	keyedStore
	*storage
}

// StoreOption is an option of NewStore and NewIndexer.
type StoreOption = func(*cache)

// WithTransformer makes the store transform objects before it stores them.
func WithTransformer(transformer TransformFunc) StoreOption {
	return func(c *cache) { c.transformer = transformer }
}

// NewStore makes an empty Store. It panics if keyFunc is nil.
func NewStore(keyFunc KeyFunc, opts ...StoreOption) Store {
	return NewIndexer(keyFunc, nil, opts...)
}

// NewIndexer makes an empty Indexer. It panics for a nil function.
func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {
	mustHave(keyFunc != nil, "NewIndexer: the key function is nil")
	s := newStorage(indexers)
	keys := keyer{keyFunc: keyFunc, byName: isByName(keyFunc)}
	c := &cache{keyedStore{scope: &s.whole, keyer: keys}, s}
	for _, option := range opts {
		option(c)
	}
	return c
}

// keyedStoreOf returns the keyed store behind a store or view of this package.
func keyedStoreOf(store any) (*keyedStore, bool) {
	if own, ok := store.(interface{ keyed() *keyedStore }); ok {
		return own.keyed(), true
	}
	return nil, false
}

func (k *keyedStore) keyed() *keyedStore { return k }

// Add puts obj under its key.
func (k *keyedStore) Add(obj any) error { return k.Update(obj) }

// Update puts obj under its key.
func (k *keyedStore) Update(obj any) error {
	one := [1]change{{received: received{kind: Updated, object: obj}}}
	c := &one[0]
	in := k.intake()
	k.identify(c)
	if c.prepared.err != nil {
		return c.prepared.failure()
	}

	buffer := valueBuffers.Get().(*valueBuffer)
	in.buffer = *buffer
	_ = in.prepare(context.Background(), c)
	_, _ = k.storage.write(one[:], storeWrite{scope: k.scope})
	*buffer = in.buffer.emptied() // the table has copies
	valueBuffers.Put(buffer)
	return c.prepared.failure()
}

// Delete removes the object under obj's key.
func (k *keyedStore) Delete(obj any) error {
	key, err := k.eventKey(obj)
	if err != nil {
		return KeyError{obj, err}
	}
	one := [1]change{{prepared: prepared{key: key, deletes: true}}}
	_, _ = k.storage.write(one[:], storeWrite{scope: k.scope})
	return nil
}

// eventKey implements eventChecker. It also accepts a tombstone.
func (k *keyer) eventKey(obj any) (table.Key, error) {
	var m metadata
	_ = m.read(obj)
	return k.keyOf(obj, &m)
}

// keyOf returns the key of an object with the metadata m.
func (k *keyer) keyOf(obj any, m *metadata) (table.Key, error) {
	if k.byName && m.name != "" {
		return m.nameKey(), nil
	}
	text, err := keyOf(k.keyFunc, obj)
	if err != nil {
		return table.Key{}, err
	}
	return m.key(text), nil
}

// Transformer returns the function that WithTransformer set, or nil.
func (k *keyedStore) Transformer() TransformFunc { return k.transformer }

// Get returns the object under obj's key. See GetByKey.
func (k *keyedStore) Get(obj any) (item any, exists bool, err error) {
	key, err := k.eventKey(obj)
	switch {
	case errors.Is(err, errOtherNamespace): // an error for writers only
		return nil, false, nil
	case err != nil:
		return nil, false, KeyError{obj, err}
	}
	return k.storage.getKey(key)
}

// GetByKey returns the object under key. The error is an *ObjectError, and ErrQuarantined, if its
// only state could not be applied.
func (k *keyedStore) GetByKey(key string) (item any, exists bool, err error) {
	if !k.has(key) {
		return nil, false, nil
	}
	return k.storage.get(key)
}

// ObjectVersion returns the UID and version with which the object under key was received. If a
// transform or a reader has changed the object's metadata, the UID is empty, and so is a version
// that is not a decimal number.
func (k *keyedStore) ObjectVersion(key string) (ObjectVersion, bool) {
	found := k.entry(table.KeyOf(key))
	if received := receivedOf(found.Object); !found.Exists || originOf(received) == found.Origin {
		return received, found.Exists
	}
	return ObjectVersion{ResourceVersion: found.Origin.Version()}, true
}

// entry returns the entry of a key, empty if the scope does not have the key.
func (k *keyedStore) entry(key table.Key) table.Slot {
	if !k.hasKey(key) {
		return table.Slot{}
	}
	storage := k.storage
	storage.writing.Lock()
	defer storage.writing.Unlock()
	return storage.table.Find(key, storage.table.Seek(key))
}

// olderThanEntry implements eventChecker.
func (k *keyedStore) olderThanEntry(c *change) error {
	p := &c.prepared
	return p.regression(k.storage.newest(p.key, k.entry(p.key).Origin))
}

// UpdateResourceVersion sets the applied version, as Bookmark does.
func (k *keyedStore) UpdateResourceVersion(rv string) { k.Bookmark(rv) }

// quarantinedObjects returns the objects of the scope that the store has quarantined.
func (k *keyedStore) quarantinedObjects() []Quarantined {
	isOfScope := func(e quarantineEntry) bool {
		return e.at.part.owner == byStore && k.hasKey(e.at.key)
	}
	return k.storage.quarantine.shared.list(isOfScope)
}

// List returns all objects.
func (s *scope) List() []any {
	all := s.storage.table.Snapshot()
	if s.prefix == "" {
		return table.AppendObjectsOf(make([]any, 0, all.Len()), all)
	}
	list := []any{}
	for e := range all.Each {
		if s.hasKey(e.Key()) {
			list = append(list, e.Object())
		}
	}
	return list
}

// ListKeys returns all keys.
func (s *scope) ListKeys() []string {
	all := s.storage.table.Snapshot()
	keys := make([]string, 0, all.Len())
	for key := range all.EachWithKey {
		if s.has(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Bookmark sets the applied version.
func (s *scope) Bookmark(rv string) {
	_, _ = s.storage.write(nil, storeWrite{scope: s, version: rv, setsVersion: true})
}

// Resync does nothing.
func (*scope) Resync() error { return nil }

// limitKeys returns a store's key function whole with an error for objects outside the scope.
func (s *scope) limitKeys(whole KeyFunc) KeyFunc {
	return func(obj any) (string, error) {
		key, err := whole(obj)
		if err != nil || key == "" || s.has(key) {
			return key, err
		}
		name, _ := ObjectToName(obj)
		if isUndecoded(obj) && name.Namespace == "" && key == name.Name {
			return s.prefix + key, nil // its namespace could not be read
		}
		if name.Namespace+"/" == s.prefix {
			const text = "key %q does not begin with %q, although the object is of that " +
				"namespace: the key function is wrong: %w"
			return key, fmt.Errorf(text, key, s.prefix, errOtherNamespace)
		}
		return key, fmt.Errorf("%w: key %q does not begin with %q",
			errOtherNamespace, key, s.prefix)
	}
}

// InNamespace returns a view of the keys of store that begin with "namespace/": a Store for a
// reflector of that namespace. Views share the store and its indexes; each has its own lists,
// versions and failures. Prefer Config.Namespaces. To read a namespace, use an index.
//
// Writing an object of another namespace fails with a KeyError or *ObjectError. The store's version
// is the lowest of its views', and empty if one has none or two cannot be compared: make all views
// first, feed each, from one server. Do not mix writes through views with Replace or BeginReplace.
// Listing a view, or ending a replacement, reads the whole store. It panics for foreign stores, and
// a namespace that is "" or has "/".
func InNamespace(store Store, namespace string) Store {
	mustHave(namespace != "",
		"InNamespace: the namespace is empty; all namespaces together are the store itself")
	mustHave(!strings.Contains(namespace, "/"),
		"InNamespace: namespace %q contains a slash", namespace)
	whole, own := store.(*cache)
	mustHave(own && whole != nil,
		"InNamespace: the store is a view of a namespace, or not one of NewStore or NewIndexer")
	storage := whole.storage
	w := storeWrite{scope: &storage.whole}
	storage.begin(&w, nil)
	view := storage.views[namespace]
	if view == nil {
		s := &scope{storage: storage, prefix: namespace + "/"}
		s.version.Store(new(string))
		view = &keyedStore{s, keyer{keyFunc: s.limitKeys(whole.keyFunc)}, whole.transformer}
		if len(storage.views) == 0 {
			storage.replaceVersion("", *storage.whole.version.Load())
		}
		storage.views[namespace] = view
	}
	// A new view changes the store's version.
	w.scope = view.scope
	w.version = *view.version.Load()
	w.setsVersion = true
	storage.end(&w, nil)
	return view
}

// Indexer is a Store that also finds objects by values computed from them, once, when they are
// stored. All methods may be called concurrently.
type Indexer interface {
	Store
	// Index returns the objects that share a value of the named index with obj, which need not be
	// stored itself.
	Index(indexName string, obj any) ([]any, error)
	// IndexKeys returns the keys of the objects that have the value, sorted.
	IndexKeys(indexName, indexedValue string) ([]string, error)
	// ListIndexFuncValues returns the values that objects have, in no order; none if there is no
	// such index.
	ListIndexFuncValues(indexName string) []string
	// ByIndex returns the objects that have the value, in no order.
	ByIndex(indexName, indexedValue string) ([]any, error)
	// GetIndexers returns a copy of the index functions by name.
	GetIndexers() Indexers
	// AddIndexers adds indexes and returns once they can be read. Readers and writers continue
	// meanwhile. It fails, and adds none, if a name is in use, or a function is nil or fails for a
	// stored object.
	AddIndexers(newIndexers Indexers) error
}

// WithStoreMetrics publishes a store's applied version if identifier is reserved. If metrics is
// nil, the provider is that of SetInformerMetricsProvider. Informers have it in their options.
func WithStoreMetrics(
	identifier InformerNameAndResource, metrics InformerMetricsProvider,
) StoreOption {
	return func(c *cache) { c.storage.publishVersion(identifier, metrics) }
}

// WithThreadSafeStoreMetrics is WithStoreMetrics for NewThreadSafeStore.
func WithThreadSafeStoreMetrics(
	id InformerNameAndResource, metrics InformerMetricsProvider,
) ThreadSafeStoreOption {
	return func(m *threadSafeMap) { m.publishVersion(id, metrics) }
}
