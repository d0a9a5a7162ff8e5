package cache

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A queue's first list tells of everything that is listed, also of what the store
// held before: whoever consumes this queue has not been told of it.
func TestAHandlerOfAFilledStoreIsToldOfTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		first := newRig(t, source, nil)
		first.run()
		synctest.Wait()
		first.cancel()
		<-first.done
		second := newRig(t, source, func(c *Config) { c.Store = first.indexer })
		second.run()
		synctest.Wait()
		assert.ElementsMatch(t, []string{"update a/1@1", "update a/2@2"}, second.handler.take())
		second.stop()
	})
}

// A panic of a user's function is one line in the message, and its stack is kept
// for nobody: there may be one for each of many objects.
func TestAPanicThatIsHeldBackKeepsNoStack(t *testing.T) {
	indexer := NewIndexer(MetaNamespaceKeyFunc, Indexers{"panics": func(any) ([]string, error) { panic(errBoom) }})
	err := indexer.Add(pod("a", "1"))
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Contains(t, string(panicked.Stack), "consumer_quarantine_test.go")
	assert.Less(t, len(err.Error()), 200)
	assert.False(t, strings.Contains(err.Error(), "\n"))
	held := quarantinedIn(indexer)
	require.Len(t, held, 1)
	require.ErrorAs(t, held[0].Err, &panicked)
	assert.Empty(t, panicked.Stack)
	assert.ErrorIs(t, held[0].Err, errBoom)
	assert.Contains(t, held[0].Err.Error(), "boom")
}

// The controller gives the memory of a large batch back, and holds none of its
// objects.
func TestAControllerKeepsNothingOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 3000 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *Config) { c.ReflectorOptions.Strategy = ListWhole })
		r.run()
		synctest.Wait()
		outcomes := r.ctlr.(*controller).changes
		assert.LessOrEqual(t, cap(outcomes), keptCapacity)
		for _, o := range outcomes[:cap(outcomes)] {
			require.Nil(t, o.object)
			require.Nil(t, o.old)
		}
		r.stop()
	})
}

// endingStore is a store of somebody else's that ends a run with the first object.
type endingStore struct {
	Store
	end func()
}

func (s *endingStore) Add(obj any) error {
	defer s.end()
	return s.Store.Add(obj)
}

// Nor does it hold what a store of somebody else's had been given of a batch when the
// context ended.
func TestAControllerKeepsNothingOfABatchThatIsNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		ctx, cancel := context.WithCancel(t.Context())
		store := &endingStore{NewStore(MetaNamespaceKeyFunc), cancel}
		ctlr := New(&Config{
			ListerWatcher: source, Store: store, KeyFunction: MetaNamespaceKeyFunc,
			ReflectorOptions: ReflectorOptions{Strategy: ListWhole},
		}).(*controller)
		ctlr.RunWithContext(ctx)
		require.Len(t, store.ListKeys(), 1, "it has some of the batch")
		outcomes := ctlr.changes
		for _, o := range outcomes[:cap(outcomes)] {
			require.Nil(t, o.object)
		}
		source.Close()
	})
}

// G5: an empty first list is synced when its version is applied, not before, also
// if the consumer has not come to look yet. Fails if the queue does not know that
// there is a consumer.
func TestAnEmptyFirstListOfAProcessIsSyncedWithItsVersion(t *testing.T) {
	queue := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	queue.attach(popsBatches, false)
	require.NoError(t, queue.BeginReplace(ReplaceOptions{}).Commit(t.Context(), "7"))
	assert.False(t, queue.HasSynced())
	require.NoError(t, popPending(queue, func(b batch) error {
		assert.Equal(t, "7", b.version)
		assert.False(t, queue.HasSynced())
		return nil
	}))
	assert.True(t, queue.HasSynced())
}
