package cache

import "errors"

// cache is a threadSafeMap whose keys come from a key function, and whose objects
// go through a transform if there is one. It is what a reflector or a controller
// of this package fills.
type cache struct {
	storage     *threadSafeMap
	keyFunc     KeyFunc
	transformer TransformFunc
}

var (
	_ Indexer                = (*cache)(nil)
	_ TransformingStore      = (*cache)(nil)
	_ Replacer               = (*cache)(nil)
	_ ReceivedGetter         = (*cache)(nil)
	_ ResourceVersionUpdater = (*cache)(nil)
	_ eventTaker             = (*cache)(nil)
	_ batchApplier           = (*cache)(nil)
	_ quarantiner            = (*cache)(nil)
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
	c := &cache{storage: newThreadSafeMap(indexers), keyFunc: keyFunc}
	for _, option := range opts {
		option(c)
	}
	return c
}

// Add puts obj under its key.
func (c *cache) Add(obj any) error { return c.Update(obj) }

// Update puts obj under its key.
func (c *cache) Update(obj any) error {
	key, err := keyOf(c.keyFunc, obj)
	if err != nil {
		return KeyError{obj, err}
	}
	s := c.prepare(key, obj, receivedOf(obj), c.transformer)
	c.storage.write(s)
	return s.failure()
}

// Delete removes what is under obj's key.
func (c *cache) Delete(obj any) error {
	key, err := keyOf(c.keyFunc, obj)
	if err != nil {
		return KeyError{obj, err}
	}
	c.storage.Delete(key)
	return nil
}

// prepare does what needs user code to put obj under key, without a lock.
func (c *cache) prepare(key string, obj any, received Received, transform TransformFunc) *staged {
	out, keep, err := transformedUnder(key, c.keyFunc, transform, obj)
	s := stage(key, out, received)
	switch {
	case err != nil:
		s.fail(StageTransform, err)
	case !keep:
		s.entry = nil
	default:
		s.index(c.storage.indexers.Load())
	}
	return s
}

// rejection is the ObjectError of an object without a readable key.
func rejection(obj any, err error) *ObjectError {
	if errors.Is(err, ErrNilObject) && isNilPointer(obj) {
		return &ObjectError{Stage: StageMetadata, Err: err}
	}
	return &ObjectError{Key: nameOf(obj), ResourceVersion: receivedOf(obj).ResourceVersion, Stage: StageKey, Err: err}
}

// Transformer returns the function that WithTransformer set, or nil.
func (c *cache) Transformer() TransformFunc { return c.transformer }

// Get returns what is under obj's key.
func (c *cache) Get(obj any) (item any, exists bool, err error) {
	key, err := keyOf(c.keyFunc, obj)
	if err != nil {
		return nil, false, KeyError{obj, err}
	}
	return c.GetByKey(key)
}

// GetByKey returns what is under key.
func (c *cache) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = c.storage.Get(key)
	return item, exists, nil
}

// Received returns what was recorded when the object under key was received.
func (c *cache) Received(key string) (Received, bool) { return c.storage.received(key) }

// List returns all objects.
func (c *cache) List() []any { return c.storage.List() }

// ListKeys returns all keys.
func (c *cache) ListKeys() []string { return c.storage.ListKeys() }

// LastStoreSyncResourceVersion returns the applied version.
func (c *cache) LastStoreSyncResourceVersion() string {
	return c.storage.LastStoreSyncResourceVersion()
}

// Bookmark sets the applied version.
func (c *cache) Bookmark(rv string) { c.storage.Bookmark(rv) }

// UpdateResourceVersion sets the applied version, as Bookmark does.
func (c *cache) UpdateResourceVersion(rv string) { c.storage.Bookmark(rv) }

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

// Resync does nothing.
func (c *cache) Resync() error { return nil }

func (c *cache) quarantined() []Quarantined { return c.storage.quarantined() }
