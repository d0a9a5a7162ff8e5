package cache

// PopProcessFunc handles what Pop took out. obj is a Deltas for a DeltaFIFO.
type PopProcessFunc func(obj any, isInInitialList bool) error

// ProcessFunc is the PopProcessFunc of a Config.
type ProcessFunc func(obj any, isInInitialList bool) error

// ProcessBatchFunc handles what PopBatch took out: deltas in the order in which
// they arrived, at most one of each key, and, as the last, a Bookmark if the
// version moved. All of them are of the initial list, or none.
type ProcessBatchFunc func(deltas []Delta, isInInitialList bool) error

// Queue is a ReflectorStore with a way out: what goes in waits to be popped.
type Queue interface {
	ReflectorStore

	// Pop waits until something is pending, or the queue is closed and empty
	// (ErrFIFOClosed), hands the oldest to process, without a lock, and returns
	// it with process's error. It is handed out once, whatever process returns.
	Pop(PopProcessFunc) (any, error)

	// HasSynced is true once everything of the first list has been processed,
	// or if something else was put in before any list.
	HasSynced() bool

	// HasSyncedChecker is HasSynced as something that can be waited for.
	HasSyncedChecker() DoneChecker

	// Close makes Pop return ErrFIFOClosed once nothing is pending.
	Close()
}

// QueueWithBatch is a Queue that also hands out many changes at once.
type QueueWithBatch interface {
	Queue

	// PopBatch is Pop for many: it waits likewise and hands what is pending to
	// processBatch. processSingle does the same for one key's Deltas; it is
	// used where processBatch is nil.
	PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error
}

// A KeyListerGetter knows keys and the values under them.
type KeyListerGetter interface {
	KeyLister
	KeyGetter
}

// A KeyLister knows its keys.
type KeyLister interface {
	// ListKeys returns all keys, in no order.
	ListKeys() []string
}

// A KeyGetter knows the value under a key.
type KeyGetter interface {
	// GetByKey returns the value, or exists=false.
	GetByKey(key string) (value any, exists bool, err error)
}
