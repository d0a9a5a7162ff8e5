package cache

import (
	"errors"

	"github.com/watchmirror/cache/internal/table"
)

// keyedStore is a threadSafeMap, or the part of one that its scope says, whose
// keys come from a key function, and whose objects go through a transform if there
// is one. It is what a reflector or a controller of this package fills.
type keyedStore struct {
	storage *threadSafeMap
	// scope is the storage's own for a whole store.
	scope *scope
	// keyFunc fails for an object that is outside the scope. named is true if it is one of
	// ours, which give an object its name.
	keyFunc     KeyFunc
	named       bool
	transformer TransformFunc
}

// cache is a keyedStore of everything, with its indexes and its namespace views.
type cache struct {
	keyedStore
	// views are by namespace. They are never removed. The storage's mu guards
	// the map.
	views map[string]*namespaceView
	// versions are those of the views. The storage's mu guards them.
	versions viewVersions
}

var (
	_ Indexer                = (*cache)(nil)
	_ TransformingStore      = (*cache)(nil)
	_ Replacer               = (*cache)(nil)
	_ ResourceVersionUpdater = (*cache)(nil)
	_ taker                  = (*cache)(nil)
)

// StoreOption is an option of NewStore and NewIndexer.
type StoreOption = func(*cache)

// WithTransformer makes the store transform what it is given before it stores it.
// A reflector or controller that feeds the store then leaves the transform to it.
func WithTransformer(transformer TransformFunc) StoreOption {
	return func(c *cache) { c.transformer = transformer }
}

// NewStore makes an empty Store. It panics if keyFunc is nil.
func NewStore(keyFunc KeyFunc, opts ...StoreOption) Store {
	return NewIndexer(keyFunc, nil, opts...)
}

// NewIndexer makes an empty Indexer with the given indexes; the map is not kept.
// It panics if keyFunc or one of the indexers is nil.
func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {
	mustHave(keyFunc != nil, "NewIndexer: the key function is nil")
	storage := newThreadSafeMap(indexers)
	c := &cache{keyedStore: keyedStore{storage: storage, scope: &storage.whole, keyFunc: keyFunc, named: namesObjects(keyFunc)}}
	storage.version = c.versionLocked
	for _, option := range opts {
		option(c)
	}
	return c
}

// ours returns the keyed store of a Store of this package, be it a view or not.
func ours(store Store) (*keyedStore, bool) {
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
	one := k.storage.oneChange()
	defer k.storage.put(one)
	c := &one.changes[0]
	c.kind, c.object = Updated, obj
	c.says.read(obj)
	var err error
	if c.key, err = k.keyFrom(obj, &c.says); err != nil {
		return KeyError{obj, err}
	}
	c.origin = originOf(c.says.received)
	in := k.intake()
	in.prepare(c, true)
	return k.storage.write(one)
}

// Delete removes what is under obj's key.
func (k *keyedStore) Delete(obj any) error {
	key, err := k.keyOf(obj)
	if err != nil {
		return KeyError{obj, err}
	}
	k.storage.remove(key)
	return nil
}

// look reads an object's key, or that of a tombstone, and into m what was received of it.
//
// Where the key is what the object is called, it is made of the object's own strings, as
// they are now, so that no text need be kept.
func (k *keyedStore) look(obj any, m *metadata) (table.Key, error) {
	m.read(obj)
	return k.keyFrom(obj, m)
}

// keyFrom is look for an object that has said m of itself already.
func (k *keyedStore) keyFrom(obj any, m *metadata) (table.Key, error) {
	if k.named && m.name != "" {
		return m.named(), nil
	}
	text, err := keyOf(k.keyFunc, obj)
	if err != nil {
		return table.Key{}, err
	}
	return m.key(text), nil
}

func (k *keyedStore) keyOf(obj any) (table.Key, error) {
	var m metadata
	return k.look(obj, &m)
}

// key is that with a text, made of the metadata if they say the same.
func (m *metadata) key(text string) table.Key {
	if key := m.named(); key.Is(text) {
		return key
	}
	return table.KeyOf(text)
}

// rejection is the ObjectError of an object without a readable key.
func rejection(obj any, err error) *ObjectError {
	if errors.Is(err, ErrNilObject) && isNilPointer(obj) {
		return &ObjectError{Stage: StageMetadata, Err: err}
	}
	bad := &ObjectError{Key: nameOf(obj), ResourceVersion: receivedOf(obj).ResourceVersion, Stage: StageKey, Err: err}
	bad.object, _ = identityOf(obj)
	return bad
}

// Transformer returns the function that WithTransformer set, or nil.
func (k *keyedStore) Transformer() TransformFunc { return k.transformer }

// Get returns what is under obj's key. See GetByKey.
func (k *keyedStore) Get(obj any) (item any, exists bool, err error) {
	key, err := k.keyOf(obj)
	switch {
	case errors.Is(err, ErrOtherNamespace):
		// To write it would be a mistake; to ask for it has an answer.
		return nil, false, nil
	case err != nil:
		return nil, false, KeyError{obj, err}
	}
	found, exists := k.storage.table.Get(key)
	if !exists && !k.storage.quarantined.isEmpty() {
		err = k.storage.quarantined.find(key.String())
	}
	return found.Object, exists, err
}

// GetByKey returns what is under key. The error is an *ObjectError, and ErrQuarantined, if that
// is nothing because the only state that has come could not be applied.
func (k *keyedStore) GetByKey(key string) (item any, exists bool, err error) {
	if !k.scope.has(key) {
		return nil, false, nil
	}
	if item, exists = k.storage.Get(key); !exists {
		err = k.storage.quarantined.find(key)
	}
	return item, exists, err
}

// Received returns what was received of the object under key. Where a transform, or a reader, has
// changed what the object says of itself, the UID is empty, and so is a version that is no decimal
// number.
func (k *keyedStore) Received(key string) (Received, bool) {
	origin, exists := k.originUnder(table.KeyOf(key))
	if !exists {
		return Received{}, false
	}
	obj, _ := k.storage.Get(key)
	if received := receivedOf(obj); originOf(received) == origin {
		return received, true
	}
	return Received{ResourceVersion: origin.Version()}, true
}

// originUnder implements originKeeper.
func (k *keyedStore) originUnder(key table.Key) (origin table.Origin, exists bool) {
	if !k.scope.hasKey(key) {
		return origin, false
	}
	return k.storage.originOf(key)
}

// List returns all objects.
func (k *keyedStore) List() []any { return k.storage.listIn(k.scope) }

// ListKeys returns all keys.
func (k *keyedStore) ListKeys() []string { return k.storage.listKeysIn(k.scope) }

// LastStoreSyncResourceVersion returns the applied version.
func (k *keyedStore) LastStoreSyncResourceVersion() string { return k.storage.versionOf(k.scope) }

// Bookmark sets the applied version.
func (k *keyedStore) Bookmark(rv string) { k.storage.setVersion(k.scope, rv) }

// UpdateResourceVersion sets the applied version, as Bookmark does.
func (k *keyedStore) UpdateResourceVersion(rv string) { k.Bookmark(rv) }

// Resync does nothing.
func (k *keyedStore) Resync() error { return nil }

// LastStoreSyncResourceVersion returns the applied version: where there are
// namespace views, the lowest that holds of all of them. See InNamespace.
func (c *cache) LastStoreSyncResourceVersion() string {
	c.storage.mu.RLock()
	defer c.storage.mu.RUnlock()
	return c.versionLocked()
}

func (c *cache) versionLocked() string {
	if len(c.views) == 0 {
		return c.scope.version
	}
	return c.versions.lowest(c.scope.version)
}

// Index returns the objects that share a value with obj.
func (c *cache) Index(indexName string, obj any) ([]any, error) {
	return c.storage.Index(indexName, obj)
}

// IndexKeys returns the keys of the objects that have the value, sorted.
func (c *cache) IndexKeys(indexName, indexedValue string) ([]string, error) {
	return c.storage.IndexKeys(indexName, indexedValue)
}

// ListIndexFuncValues returns the values that at least one object has.
func (c *cache) ListIndexFuncValues(indexName string) []string {
	return c.storage.ListIndexFuncValues(indexName)
}

// ByIndex returns the objects that have the value.
func (c *cache) ByIndex(indexName, indexedValue string) ([]any, error) {
	return c.storage.ByIndex(indexName, indexedValue)
}

// GetIndexers returns a copy of the index functions.
func (c *cache) GetIndexers() Indexers { return c.storage.GetIndexers() }

// AddIndexers adds indexes.
func (c *cache) AddIndexers(newIndexers Indexers) error { return c.storage.AddIndexers(newIndexers) }
