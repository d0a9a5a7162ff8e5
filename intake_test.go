package cache

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

var bg = context.Background()

func TestAnUnwantedObjectIsADeletionIfItWasPresent(t *testing.T) {
	s := newTagStore(WithTransformer(func(obj any) (any, error) {
		if _, unwanted := obj.(*object).Labels["v"]; unwanted {
			return nil, nil
		}
		return obj, nil
	}))
	held := podAt("a", "1", "1")
	require.NoError(t, s.Add(held))
	present := changesOf(event{kind: Updated, obj: labelled(podAt("a", "1", "2"), "no")})
	absent := changesOf(event{kind: Added, obj: labelled(podAt("a", "2", "2"), "no")})
	for _, changes := range [][]change{present, absent} {
		_, err := s.acceptChanges(bg, changes)
		require.NoError(t, err)
		assert.True(t, changes[0].prepared.deletes)
	}
	assert.True(t, present[0].result.applied)
	assert.Same(t, held, present[0].result.old)
	assert.Nil(t, present[0].prepared.object, "without handlers, no tombstone is made")
	assert.False(t, absent[0].result.applied)
	assert.Empty(t, s.List())
}

func TestGetOfAQuarantinedKeyDoesNotWaitForAWrite(t *testing.T) {
	failing := func(any) ([]string, error) { return nil, errBoom }
	store := NewIndexer(MetaNamespaceKeyFunc, Indexers{"i": failing})
	require.Error(t, store.Add(pod("a", "1")))
	storage := store.(*cache).storage
	storage.writing.Lock()
	defer storage.writing.Unlock()
	errs := make(chan error, 2)
	go func() {
		_, _, err := store.GetByKey("a/1")
		errs <- err
		_, _, err = store.Get(pod("a", "2"))
		errs <- err
	}()
	for _, want := range []error{errBoom, nil} {
		select {
		case err := <-errs:
			assert.ErrorIs(t, err, want)
		case <-time.After(unhurried):
			t.Fatal("Get waits for a write")
		}
	}
}

func TestReadersSeeTheEntriesOfEveryOwnerOfAQuarantine(t *testing.T) {
	q := &quarantine{}
	queue := quarantinePart{shared: q, owner: byQueue}
	store := quarantinePart{shared: q, owner: byStore}
	view := quarantinePart{shared: q, owner: byQueue, prefix: "b/"}
	add := func(p quarantinePart, key, version string) bool {
		e := &ObjectError{Key: key, ResourceVersion: version, Stage: stageIndex, Err: errBoom}
		p.add(table.KeyOf(key), e, errBoom)
		return e.repeated
	}
	assert.False(t, add(queue, "a/1", "1"))
	assert.True(t, add(queue, "a/1", "1"))
	assert.False(t, add(queue, "a/1", "2"))
	assert.False(t, add(store, "a/1", "1"))
	assert.False(t, add(store, "a/2", ""))
	assert.False(t, add(store, "a/2", ""), "without a version each one is reported")
	assert.False(t, add(view, "b/1", "1"))
	queue.releaseIf(func(table.Key) bool { return true })
	assert.Empty(t, q.list(func(e quarantineEntry) bool { return e.at.part == queue }))
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		assert.ErrorIs(t, q.find(table.KeyOf(key)), ErrQuarantined)
		assert.ErrorContains(t, q.find(table.KeyOf(key)), key)
	}
	store.release(table.KeyOf("a/1"))
	store.release(table.KeyOf("a/2"))
	view.release(table.KeyOf("b/1"))
	assert.NoError(t, q.find(table.KeyOf("a/1")))
	assert.False(t, q.any())
	assert.Nil(t, q.entries)
}

func TestAReaderFindsAnEntryQuarantinedUnderAnotherName(t *testing.T) {
	reflector := quarantinePart{shared: &quarantine{}, owner: byReflector}
	place := table.KeyOf("a/1\x00pods")
	reflector.add(place, &ObjectError{Key: "a/1", storeKey: table.KeyOf("key"), Err: errBoom}, errBoom)
	assert.ErrorIs(t, reflector.shared.find(table.KeyOf("key")), errBoom)
	assert.NoError(t, reflector.shared.find(table.KeyOf("a/1")))
	reflector.release(place)
	assert.NoError(t, reflector.shared.find(table.KeyOf("key")))
}

// G10: fails if what a write quarantines and releases is changed where readers see it.
func TestReadersDoNotWaitForALargeQuarantine(t *testing.T) {
	q := &quarantine{}
	store := quarantinePart{shared: q, owner: byStore}
	for i := range 2 * table.InPlace {
		store.addInWrite(&ObjectError{Key: "a/" + itoa(i), Stage: stageIndex, Err: errBoom}, errBoom)
	}
	publish := func(before, after error) {
		require.True(t, q.stageWrite())
		inTime(t, "readers", func() {
			assert.ErrorIs(t, q.find(table.KeyOf("a/1")), before)
			assert.ErrorIs(t, findIn(q.snapshot(), table.KeyOf("a/1")), before)
		})
		q.publishStaged()
		assert.ErrorIs(t, q.find(table.KeyOf("a/1")), after)
	}
	publish(nil, ErrQuarantined)
	store.supersedeIf(func(table.Key) bool { return true })
	publish(ErrQuarantined, nil)
	assert.False(t, q.any())
}
