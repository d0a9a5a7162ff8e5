package cache

// KeyFunc makes the key of an object. It must be deterministic, must not change
// the object, and may be called concurrently. Keys must not be empty.
//
// Of an Undecoded it should make the key from the metadata, which is all there is of
// it; where it cannot, and fails or panics, that object is not known again.
type KeyFunc func(obj any) (string, error)

// TransformFunc makes of a received object what is to be kept, for example the
// object without the fields that nobody reads. It may change the object in place
// and may return one of another type, if the key function accepts that and gives
// it the same key. (nil, nil) means that the object is not wanted: it is absent,
// and a deletion if it was present. An error quarantines the object.
//
// It runs at most once for each object received, and not for objects that a
// relist shows to be unchanged.
type TransformFunc func(any) (any, error)

// Store holds the newest state of each object under its key. NewStore and
// NewIndexer make one; a DeltaFIFO is none, it holds changes.
//
// All methods may be called concurrently and answer from memory. Objects are
// shared: what goes in and what comes out must not be changed.
//
// The stores of this package reject an object whose key, transform or index
// values fail: the method returns a KeyError or an *ObjectError, the state that
// was there before stays, and everything else goes on. They also implement
// Replacer, ReceivedGetter and ResourceVersionUpdater.
type Store interface {
	// Add puts obj under its key, whether or not something was there before.
	Add(obj any) error
	// Update does the same.
	Update(obj any) error
	// Delete removes what is under obj's key; nothing happens if there is
	// nothing. obj is only asked for its key.
	Delete(obj any) error

	// List returns the objects, in no order. The slice is the caller's.
	List() []any
	// ListKeys returns the keys, in no order. The slice is the caller's.
	ListKeys() []string

	// LastStoreSyncResourceVersion returns the applied version: the resource
	// version up to which the store holds everything that the source had.
	// Empty until a list was applied. Add, Update and Delete do not move it,
	// for one object says nothing of the others (client-go's do).
	LastStoreSyncResourceVersion() string
	// Bookmark says that the store now holds everything up to version rv.
	Bookmark(rv string)

	// Get returns what is under obj's key, with the errors of GetByKey, and a KeyError if
	// obj has none.
	Get(obj any) (item any, exists bool, err error)
	// GetByKey returns what is under key. If that is nothing because the only state that has
	// come is quarantined, the stores of this package return an error that says why, of which
	// errors.Is finds ErrQuarantined and the cause: the source has the object, so it must not
	// be taken for deleted. That includes what the reflector, controller or informer that fills
	// the store could not take (by its namespace and name, where it has no key). To a Process
	// that fills a store itself, and asks it first, the error must not be a reason not to write.
	// Otherwise err is nil.
	GetByKey(key string) (item any, exists bool, err error)

	// Replace makes the list the whole content and resourceVersion the applied
	// version, in one step for readers. The store owns the slice afterwards. An
	// object with the UID and resource version that were last received under
	// its key is unchanged and stays as it is, pointer included.
	//
	// The error joins those of the objects that were rejected: they keep their
	// previous state, all others were taken.
	Replace(list []any, resourceVersion string) error

	// Resync does nothing here; it means something to a queue.
	Resync() error
}
