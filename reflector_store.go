package cache

// ReflectorStore is what a reflector needs of a store. Calls come from one
// goroutine at a time. What it may implement besides: Replacer,
// ResourceVersionUpdater, ReflectorBookmarkStore.
type ReflectorStore interface {
	// Add takes an object that the source says is new.
	Add(obj any) error
	// Update takes a newer state of an object.
	Update(obj any) error
	// Delete takes the final state of an object that is gone. Of one whose final
	// state the source could not decode (Undecoded) it is given the last state
	// instead, if the store has a GetByKey, as a Store does, which returns that for
	// namespace/name; else a DeletedFinalStateUnknown with namespace/name for Key
	// and no Obj; and, if it refuses that with a KeyError, the Undecoded. If it
	// panics then, that is taken for a refusal. Stores and queues of this package
	// know for themselves what to do.
	Delete(obj any) error
	// Replace makes the list the whole content, at the given version. The store
	// owns the slice afterwards.
	Replace(list []any, resourceVersion string) error
	// Resync is called every resync period.
	Resync() error
}

// embedsQueue says whether a store is a program's type that embeds a DeltaFIFO. It has that one's
// unexported methods too, and may have an Add or a Replace of its own, which are to be called.
func embedsQueue(store ReflectorStore) bool {
	promoted, has := store.(interface{ itself() *DeltaFIFO })
	return has && store != ReflectorStore(promoted.itself())
}

// takerOf is a store as one that takes changes: itself, if it is one of this package.
func takerOf(store ReflectorStore) (t taker, ours bool) {
	if own, ok := store.(taker); ok && !embedsQueue(store) {
		return own, true
	}
	return foreignStore{store}, false
}

// ReflectorBookmarkStore is an optional interface of a ReflectorStore that is
// given the versions that bookmarks bring, each once: that of the last list too, if the first
// event at it is a bookmark.
type ReflectorBookmarkStore interface {
	Bookmark(resourceVersion string) error
}

// ResourceVersionUpdater is an optional interface of a ReflectorStore that is
// called each time the version moves: with an event, after the event was taken;
// with a bookmark, unless the store is a ReflectorBookmarkStore. It is called with the version of
// the last list too, by the first event or bookmark at it.
type ResourceVersionUpdater interface {
	UpdateResourceVersion(resourceVersion string)
}

// TransformingStore is an optional interface of a ReflectorStore that transforms
// what it is given. The reflector leaves the transform to the store.
type TransformingStore interface {
	ReflectorStore
	Transformer() TransformFunc
}
