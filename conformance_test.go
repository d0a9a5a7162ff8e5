package cache

import (
	"testing"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// The conformance suite for stores, run on those of this package.

// A queue's content is what its consumer makes of it: here a store, into which all that
// is pending is popped.
func TestDeltaFIFOKeepsThePromisesOfAReflectorStore(t *testing.T) {
	cachetest.TestStore(t, cachetest.StoreConfig{
		New: func(testing.TB) cachetest.ReflectorStore {
			known := NewStore(DeletionHandlingMetaNamespaceKeyFunc)
			return &queueAndStore{known: known, DeltaFIFO: NewDeltaFIFOWithOptions(DeltaFIFOOptions{
				KnownObjects: known, EmitDeltaTypeReplaced: true,
			})}
		},
		Content: func(store cachetest.ReflectorStore) ([]any, error) { return store.(*queueAndStore).content() },
	})
}

type queueAndStore struct {
	*DeltaFIFO
	known Store
}

func (q *queueAndStore) content() ([]any, error) {
	for q.log.HasChanges() {
		if _, err := q.Pop(q.apply); err != nil {
			return nil, err
		}
	}
	return q.known.List(), nil
}

func (q *queueAndStore) apply(obj any, _ bool) error {
	for _, delta := range obj.(Deltas) {
		write := q.known.Update
		if delta.Type == Deleted {
			write = q.known.Delete
			if tombstone, ok := delta.Object.(DeletedFinalStateUnknown); ok && tombstone.Obj != nil {
				delta.Object = tombstone.Obj
			}
		}
		if err := write(delta.Object); err != nil {
			return err
		}
	}
	return nil
}

// What the types of this package implement.
var (
	_ Snapshotter = (*cache)(nil)
	_ Snapshotter = (*threadSafeMap)(nil)
	_ Snapshotter = (*sharedIndexInformer)(nil)

	_ Indexer                = (*cache)(nil)
	_ TransformingStore      = (*cache)(nil)
	_ Replacer               = (*cache)(nil)
	_ ResourceVersionUpdater = (*cache)(nil)
	_ changeAccepter         = (*cache)(nil)

	_ QueueWithBatch         = (*DeltaFIFO)(nil)
	_ TransformingStore      = (*DeltaFIFO)(nil)
	_ DoneChecker            = (*DeltaFIFO)(nil)
	_ Replacer               = (*DeltaFIFO)(nil)
	_ ResourceVersionUpdater = (*DeltaFIFO)(nil)
	_ eventChecker           = (*DeltaFIFO)(nil)

	_ Replacer               = (*feed)(nil)
	_ ResourceVersionUpdater = (*feed)(nil)
	_ changeAccepter         = (*feed)(nil)

	_ Controller     = (*Mirror)(nil)
	_ StatusReporter = (*Mirror)(nil)

	_ ListerWatcher            = (*ListWatch)(nil)
	_ ListerWatcherWithContext = (*ListWatch)(nil)
)

// Package kubeapi does not import this one: that the two fit is seen here.
var (
	_ ItemLister        = (*kubeapi.ListerWatcher)(nil)
	_ UndecodableObject = (*kubeapi.UndecodableObject)(nil)
)

// The whole line over HTTP, in virtual time: a source behind the list/watch
// protocol, a network that can be cut and frozen, kubeapi, and the pipeline.
