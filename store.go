package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/watchmirror/cache/internal/table"
)

// KeyFunc makes the key of an object, never empty. It must be deterministic, must not change the object, and may be
// called concurrently.
type KeyFunc func(obj any) (string, error)

// TransformFunc turns a received object into the one to store, for example without unused fields. It may change the
// object in place, and return another type if the key stays the same. (nil, nil) drops and deletes the object. An error
// quarantines it. It runs at most once for each object received, not for unchanged objects of a relist.
type TransformFunc func(any) (any, error)

// Store holds the newest state of each object under its key. All methods may be called concurrently and read from
// memory. Objects are shared and must not be changed. The returned slices are the caller's.
//
// An object whose key, transform or index values fail is rejected: the method returns a KeyError or *ObjectError, and
// its previous state stays. This package's stores implement Snapshotter and Replacer.
type Store interface {
	// Add stores obj under its key, whether or not something was there. Update does the same.
	Add(obj any) error
	Update(obj any) error
	// Delete removes the object under obj's key, if there is one.
	Delete(obj any) error
	// List and ListKeys return all objects or keys, in no order.
	List() []any
	ListKeys() []string
	// LastStoreSyncResourceVersion returns the applied version: the store has all changes up to it. It is empty until a
	// list was applied. Unlike client-go's, Add, Update and Delete do not move it.
	LastStoreSyncResourceVersion() string
	// Bookmark sets the applied version.
	Bookmark(rv string)
	// Get returns the object under obj's key, with the errors of GetByKey, and a KeyError if obj has no key.
	Get(obj any) (item any, exists bool, err error)
	// GetByKey returns the object under key. The error is nil, or wraps ErrQuarantined: its only state is quarantined.
	GetByKey(key string) (item any, exists bool, err error)
	// Replace makes the list the whole content and resourceVersion the applied version, in one step for readers. The
	// store owns the slice. An object with the UID and resource version last received under its key stays as it is,
	// pointer included. The error joins those of rejected objects; all others are stored.
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// scoped is a storage, or the part of one that its scope names.
type scoped struct {
	storage *storage
	// scope is &storage.whole for a whole store.
	scope *scope
}

// keyedStore is a scoped store whose keys come from a key function. A reflector or a controller of
// this package fills it.
type keyedStore struct {
	scoped
	keyer       // its keyFunc fails for an object outside the scope
	transformer TransformFunc
}

// keyer makes the keys of a store or queue. named is true if the user has set no key function: keys are
// namespace and name then, and keyFunc is called only for an object without a name.
type keyer struct {
	keyFunc KeyFunc
	named   bool
}

// cache is a keyedStore of everything, with its indexes and snapshots.
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
	c := &cache{keyedStore{scoped: scoped{s, &s.whole}, keyer: keyer{keyFunc: keyFunc}}, s}
	for _, option := range opts {
		option(c)
	}
	return c
}

// ours returns the keyed store of a store of this package, be it a view or not.
func ours(store any) (*keyedStore, bool) {
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
	one := [1]change{{kind: Updated, object: obj}}
	c := &one[0]
	in := k.intake()
	if in.identify(one[:]); c.err == nil {
		_ = in.prepare(context.Background(), c)
		k.storage.write(one[:], storeWrite{scope: k.scope})
	}
	return c.failure()
}

// Delete removes the object under obj's key.
func (k *keyedStore) Delete(obj any) error {
	key, err := k.eventKey(obj)
	if err != nil {
		return KeyError{obj, err}
	}
	k.storage.write([]change{{kind: Deleted, key: key}}, storeWrite{scope: k.scope})
	return nil
}

// eventKey is the key of an object, or of a tombstone. It implements entryKeeper.
func (k *keyer) eventKey(obj any) (table.Key, error) {
	var m metadata
	_ = m.read(obj)
	return k.keyOf(obj, &m)
}

// keyOf is the key of an object with the metadata m.
func (k *keyer) keyOf(obj any, m *metadata) (table.Key, error) {
	if k.named && m.name != "" {
		return m.named(), nil
	}
	text, err := keyOf(k.keyFunc, obj)
	if err != nil {
		return table.Key{}, err
	}
	return m.key(text), nil
}

// key is that with a text. If that is namespace and name, the key shares the object's own strings,
// and the text is not kept.
func (m *metadata) key(text string) table.Key {
	if key := m.named(); key.Is(text) {
		return key
	}
	return table.KeyOf(text)
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
	return k.get(key)
}

// GetByKey returns the object under key. The error is an *ObjectError, and ErrQuarantined, if
// there is none because its only state could not be applied.
func (k *keyedStore) GetByKey(key string) (item any, exists bool, err error) {
	if !k.scope.has(key) {
		return nil, false, nil
	}
	return k.get(table.KeyOf(key))
}

func (k *keyedStore) get(key table.Key) (item any, exists bool, err error) {
	if item, exists = k.storage.table.Get(key); !exists {
		err = k.storage.quarantine.find(key)
	}
	return item, exists, err
}

// ObjectVersion returns what was received of the object under key. Where a transform, or a reader, has
// changed the object's own metadata, the UID is empty, and so is a version that is no decimal number.
func (k *keyedStore) ObjectVersion(key string) (ObjectVersion, bool) {
	found := k.entry(table.KeyOf(key))
	if received := receivedOf(found.Object); !found.Exists || originOf(received) == found.Origin {
		return received, found.Exists
	}
	return ObjectVersion{ResourceVersion: found.Origin.Version()}, true
}

// entry is the one under a key, if that is in the scope.
func (k *keyedStore) entry(key table.Key) (found table.Slot) {
	if !k.scope.hasKey(key) {
		return found
	}
	m := k.storage
	m.writing.Lock()
	defer m.writing.Unlock()
	return m.table.Find(key, m.table.Seek(key))
}

// olderThanEntry implements entryKeeper.
func (k *keyedStore) olderThanEntry(c *change) error {
	return k.storage.regression(c, k.entry(c.key).Origin)
}

// UpdateResourceVersion sets the applied version, as Bookmark does.
func (k *keyedStore) UpdateResourceVersion(rv string) { k.Bookmark(rv) }

// quarantined returns the objects that the store has quarantined, of its scope.
func (k *keyedStore) quarantined() []Quarantined {
	return k.storage.quarantine.list(func(at quarantinePlace) bool { return at.part.owner == byStore && k.scope.hasKey(at.key) })
}

// List returns all objects.
func (s scoped) List() []any {
	all := s.storage.table.Snapshot()
	if s.scope.prefix == "" {
		return table.AppendObjectsOf(make([]any, 0, all.Len()), all)
	}
	list := []any{}
	for e := range all.Each {
		if s.scope.hasKey(e.Key()) {
			list = append(list, e.Object())
		}
	}
	return list
}

// ListKeys returns all keys.
func (s scoped) ListKeys() []string {
	all := s.storage.table.Snapshot()
	keys := make([]string, 0, all.Len())
	all.EachWithKey(func(key string, _ table.Entry) bool {
		if s.scope.has(key) {
			keys = append(keys, key)
		}
		return true
	})
	return keys
}

// LastStoreSyncResourceVersion returns the applied version. Where there are namespace views, that
// of the whole is the lowest that holds for all of them: see InNamespace.
func (s scoped) LastStoreSyncResourceVersion() string {
	if s.scope == &s.storage.whole {
		return *s.storage.applied.Load()
	}
	return *s.scope.version.Load()
}

// Bookmark sets the applied version.
func (s scoped) Bookmark(rv string) {
	m := s.storage
	m.moveVersion(func() {
		s.scope.version.Store(&rv)
		m.applied.Store(m.lowest())
	})
}

// Resync does nothing.
func (scoped) Resync() error { return nil }

// scope is a part of a store: the keys that begin with a prefix, up to which version they are
// applied, and whether they have been listed. The empty prefix is everything. Entries do not refer to
// their scope, so listing one reads all entries of the store.
type scope struct {
	prefix string

	version atomic.Pointer[string]
	// committed is true once a replacement was committed.
	committed bool
}

func (s *scope) has(key string) bool { return strings.HasPrefix(key, s.prefix) }

// hasKey is has for a table key, without making its text.
func (s *scope) hasKey(key table.Key) bool { return s.prefix == "" || key.IsIn(s.prefix) }

// refusal returns the error for an object whose key is outside the scope. The object's namespace
// shows whether the source or the key function is wrong.
func (s *scope) refusal(key string, obj any) error {
	name, err := ObjectToName(finalStateOf(obj))
	if err == nil && name.Namespace+"/" == s.prefix {
		return fmt.Errorf("key %q does not begin with %q, although the object is of that namespace: the key function does not fit: %w",
			key, s.prefix, errOtherNamespace)
	}
	return fmt.Errorf("%w: key %q does not begin with %q", errOtherNamespace, key, s.prefix)
}

// keyFunc is a store's key function for objects in the scope.
func (s *scope) keyFunc(whole KeyFunc) KeyFunc {
	return func(obj any) (string, error) {
		key, err := whole(obj)
		switch {
		case err != nil || key == "" || s.has(key):
		case isUndecoded(obj) && key == nameOf(obj) && !strings.Contains(key, "/"):
			// Its namespace could not be read, and can be no other than this.
			key = s.prefix + key
		default:
			err = s.refusal(key, obj)
		}
		return key, err
	}
}

// InNamespace returns a view of the keys of store that begin with "namespace/": a Store for a reflector of that
// namespace. Views share the store and its indexes; each has its own lists, versions and failures. Prefer
// Config.Namespaces. To read a namespace, use an index.
//
// Writing an object of another namespace fails with a KeyError or *ObjectError. The store's version is the lowest of
// its views', and empty if one has none or two cannot be compared: make all views first, feed each, from one server. Do
// not mix writes through views with Replace or BeginReplace. Listing a view, or ending a replacement, reads the whole
// store. It panics for foreign stores, and a namespace that is "" or has "/".
func InNamespace(store Store, namespace string) Store {
	mustHave(namespace != "", "InNamespace: the namespace is empty; all namespaces together are the store itself")
	mustHave(!strings.Contains(namespace, "/"), fmt.Sprintf("InNamespace: namespace %q contains a slash", namespace))
	_, isView := store.(*keyedStore)
	mustHave(!isView, "InNamespace: the store is a view of a namespace already")
	whole, own := store.(*cache)
	mustHave(own && whole != nil, "InNamespace: the store is not one of NewStore or NewIndexer")
	m := whole.storage
	var view *keyedStore
	m.moveVersion(func() {
		if view = m.views[namespace]; view != nil {
			return
		}
		if m.views == nil {
			m.views = map[string]*keyedStore{}
		}
		s := &scope{prefix: namespace + "/"}
		s.version.Store(new(string))
		view = &keyedStore{scoped{m, s}, keyer{keyFunc: s.keyFunc(whole.keyFunc)}, whole.transformer}
		m.views[namespace] = view
		m.applied.Store(m.lowest())
	})
	return view
}

// lowest is the version up to which the store and its views hold all that their sources had, empty if that cannot be said. A
// version of the store itself holds for the views that have none. The caller has the table's lock.
func (m *storage) lowest() *string {
	whole := m.whole.version.Load()
	if len(m.views) == 0 {
		return whole
	}
	var versions []string
	for _, view := range m.views {
		versions = append(versions, cmp.Or(*view.scope.version.Load(), *whole))
	}
	if *whole != "" {
		versions = append(versions, *whole)
	}
	return new(lowestVersion(versions...))
}

// lowestVersion returns the lowest of one or more versions, "" if two different ones cannot be compared,
// as an empty one with any other.
func lowestVersion(versions ...string) string {
	lowest := versions[0]
	for _, version := range versions[1:] {
		switch {
		case version == lowest || versionBefore(lowest, version):
		case versionBefore(version, lowest):
			lowest = version
		default:
			return ""
		}
	}
	return lowest
}

// moveVersion changes a version, and nothing else.
func (m *storage) moveVersion(move func()) {
	m.writing.Lock() // else a write could be said to be in the log before it is
	m.table.Relabel(move)
	m.logged.Store(m.applied.Load())
	m.writing.Unlock()
	if m.gauge.Load() != nil {
		m.showVersion()
	}
	m.moved.wake()
}
