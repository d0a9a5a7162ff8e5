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

// changeOf is what a queue makes of a received object.
func changeOf(kind DeltaType, obj *object) queued {
	return queued{Delta: Delta{kind, obj}, key: table.KeyOf(nameOf(obj)), received: receivedOf(obj)}
}

func TestChangesOfOneKeyInABatchSeeEachOther(t *testing.T) {
	s := newTagStore()
	first, second, third := podAt("a", "1", "1"), podAt("a", "1", "2"), podAt("a", "1", "4")
	out := applyBatch(s, context.Background(), batch{version: "4", changes: []queued{
		changeOf(Added, first),
		changeOf(Updated, second),
		changeOf(Deleted, podAt("a", "1", "3")),
		changeOf(Added, third),
		changeOf(Deleted, podAt("b", "9", "4")),
	}}, false, nil)
	require.Len(t, out, 5)
	assert.Equal(t, outcome{obj: first}, out[0])
	assert.Equal(t, outcome{old: first, existed: true, obj: second}, out[1])
	assert.Equal(t, outcome{old: second, existed: true, obj: podAt("a", "1", "3")}, out[2])
	assert.Equal(t, outcome{obj: third}, out[3])
	assert.Equal(t, outcome{}, out[4], "a deletion of nothing")
	assert.Equal(t, map[string]string{"a/1": "4"}, contents(s))
	assert.Equal(t, "4", s.LastStoreSyncResourceVersion())
}

func TestABatchDeletesByKeyWhateverTheObject(t *testing.T) {
	s := newTagStore()
	held := podAt("a", "1", "1")
	require.NoError(t, s.Add(held))
	tombstone := DeletedFinalStateUnknown{Key: "a/1", Obj: held}
	out := applyBatch(s, context.Background(), batch{changes: []queued{{Delta: Delta{Deleted, tombstone}, key: table.KeyOf("a/1")}}}, false, nil)
	assert.Equal(t, outcome{old: held, existed: true, obj: tombstone}, out[0])
	assert.Empty(t, s.List())
}

func TestABadObjectInABatchDelaysNoOther(t *testing.T) {
	s := newTagStore()
	before := podAt("a", "1", "1")
	require.NoError(t, s.Add(before))
	good := podAt("a", "2", "3")
	out := applyBatch(s, context.Background(), batch{version: "4", changes: []queued{
		changeOf(Updated, tagged(podAt("a", "1", "2"), "bad")),
		changeOf(Added, good),
	}}, false, nil)
	require.NotNil(t, out[0].err)
	assert.Equal(t, stageIndex, out[0].err.Stage)
	assert.Equal(t, outcome{obj: good}, out[1])
	assert.Equal(t, map[string]string{"a/1": "1", "a/2": "3"}, contents(s))
	assert.Equal(t, "4", s.LastStoreSyncResourceVersion(), "the version of what is held back counts")
	assert.Equal(t, []string{"a/1"}, heldKeys(s))

	// Within one batch the later change decides, both ways.
	applyBatch(s, context.Background(), batch{changes: []queued{
		changeOf(Updated, podAt("a", "1", "5")),
		changeOf(Updated, tagged(podAt("a", "2", "5"), "bad")),
		changeOf(Updated, podAt("a", "2", "6")),
		changeOf(Updated, tagged(podAt("a", "1", "6"), "bad")),
	}}, false, nil)
	assert.Equal(t, []string{"a/1"}, heldKeys(s))
	assert.Equal(t, map[string]string{"a/1": "5", "a/2": "6"}, contents(s))
}

// A resync hands out what is stored: it is neither written nor transformed nor
// indexed anew. Fails if arrive prepares such a change like any other.
func TestASyncOfTheStoredObjectChangesNothing(t *testing.T) {
	calls := 0
	s := newTagStore(WithTransformer(func(obj any) (any, error) { calls++; return obj, nil }))
	held := tagged(podAt("a", "1", "1"), "x")
	require.NoError(t, s.Add(held))
	held.Annotations["tags"] = "changed by a reader"
	out := applyBatch(s, context.Background(), batch{changes: []queued{{Delta: Delta{Sync, held}, key: table.KeyOf("a/1")}}}, false, nil)
	assert.Equal(t, outcome{old: held, existed: true, obj: held}, out[0])
	assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "x"))
	assert.Equal(t, 1, calls)
	received, _ := receivedUnder(s, "a/1")
	assert.Equal(t, Received{"1", "1"}, received, "what was received is still known")

	// A queue without EmitDeltaTypeReplaced tells a list as Sync.
	listed := podAt("a", "1", "2")
	out = applyBatch(s, context.Background(), batch{changes: []queued{changeOf(Sync, listed)}}, false, nil)
	assert.Equal(t, outcome{old: held, existed: true, obj: listed}, out[0])
	assert.Equal(t, 2, calls)
}

func TestASyncOfWhatWasSupersededInTheSameBatchIsNotWritten(t *testing.T) {
	s := newTagStore()
	old, newer := podAt("a", "1", "1"), podAt("a", "1", "2")
	require.NoError(t, s.Add(old))
	out := applyBatch(s, context.Background(), batch{changes: []queued{
		changeOf(Updated, newer), {Delta: Delta{Sync, old}, key: table.KeyOf("a/1")},
		changeOf(Deleted, podAt("a", "1", "3")), {Delta: Delta{Sync, old}, key: table.KeyOf("a/1")},
	}}, false, nil)
	assert.Equal(t, outcome{old: newer, existed: true, obj: newer}, out[1])
	assert.Equal(t, outcome{}, out[3])
	assert.Empty(t, s.List())
}

func TestAnUnwantedObjectIsADeletionIfItWasPresent(t *testing.T) {
	s := newTagStore(WithTransformer(func(obj any) (any, error) {
		if _, unwanted := obj.(*object).Labels["v"]; unwanted {
			return nil, nil
		}
		return obj, nil
	}))
	held := podAt("a", "1", "1")
	require.NoError(t, s.Add(held))
	out := applyBatch(s, context.Background(), batch{changes: []queued{
		changeOf(Updated, labelled(podAt("a", "1", "2"), "no")),
		changeOf(Added, labelled(podAt("a", "2", "2"), "no")),
	}}, false, nil)
	assert.Equal(t, outcome{old: held, existed: true, unwanted: true}, out[0])
	assert.Equal(t, outcome{}, out[1])
	assert.Empty(t, s.List())
}

func TestWhatTheQueueTransformedIsNotTransformedAgain(t *testing.T) {
	s := newTagStore(WithTransformer(func(any) (any, error) { return nil, errBoom }))
	out := applyBatch(s, context.Background(), batch{changes: []queued{
		changeOf(Added, podAt("a", "1", "1")), changeOf(Deleted, podAt("a", "1", "2")), changeOf(Added, podAt("a", "2", "3")),
	}}, true, nil)
	for _, o := range out {
		assert.Nil(t, o.err)
		assert.Nil(t, o.finalErr)
	}
	assert.Equal(t, map[string]string{"a/2": "3"}, contents(s))
}

// A deletion happens whatever a transform makes of the final state; it is then
// told as a tombstone with the last state that was known.
func TestADeletionHappensWhateverTheTransformSays(t *testing.T) {
	for name, c := range map[string]struct {
		result func(*object) (any, error)
		fails  bool
		final  bool
	}{
		"error":       {func(*object) (any, error) { return nil, errBoom }, true, false},
		"another key": {func(*object) (any, error) { return pod("b", "9"), nil }, true, false},
		"nil":         {func(*object) (any, error) { return nil, nil }, false, false},
		"as it is":    {func(o *object) (any, error) { return o, nil }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTagStore(WithTransformer(func(obj any) (any, error) {
				if o := obj.(*object); o.ResourceVersion == "2" {
					return c.result(o)
				}
				return obj, nil
			}))
			held := podAt("a", "1", "1")
			require.NoError(t, s.Add(held))
			gone := podAt("a", "1", "2")
			out := applyBatch(s, context.Background(), batch{changes: []queued{changeOf(Deleted, gone)}}, false, nil)
			assert.Equal(t, held, out[0].old)
			assert.Nil(t, out[0].err, "nothing is held back")
			assert.Empty(t, s.quarantined())
			assert.Empty(t, s.List())
			if c.final {
				assert.Same(t, gone, out[0].obj)
			} else {
				assert.Equal(t, DeletedFinalStateUnknown{Key: "a/1", Obj: held}, out[0].obj)
			}
			if c.fails {
				require.NotNil(t, out[0].finalErr)
				assert.Equal(t, []any{"a/1", "2", stageTransform}, []any{out[0].finalErr.Key, out[0].finalErr.ResourceVersion, out[0].finalErr.Stage})
			} else {
				assert.Nil(t, out[0].finalErr)
			}
		})
	}
}

func TestGetOfAQuarantinedKeyDoesNotWaitForAWrite(t *testing.T) {
	store := NewIndexer(MetaNamespaceKeyFunc, Indexers{"i": func(any) ([]string, error) { return nil, errBoom }})
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
		case <-time.After(10 * time.Second):
			t.Fatal("Get waits for a write")
		}
	}
}

func TestReadersSeeTheEntriesOfEveryOwnerOfAQuarantine(t *testing.T) {
	q := &quarantine{}
	queue, store, view := quarantinePart{q, byQueue, ""}, quarantinePart{q, byStore, ""}, quarantinePart{q, byQueue, "b/"}
	add := func(p quarantinePart, key, version string) bool {
		e := &ObjectError{Key: key, ResourceVersion: version, Stage: stageIndex, Err: errBoom}
		p.add("", e, errBoom)
		return e.repeated
	}
	assert.False(t, add(queue, "a/1", "1"))
	assert.True(t, add(queue, "a/1", "1"))
	assert.False(t, add(queue, "a/1", "2"))
	assert.False(t, add(store, "a/1", "1"))
	assert.False(t, add(store, "a/2", ""))
	assert.False(t, add(store, "a/2", ""), "without a version each one is reported")
	assert.False(t, add(view, "b/1", "1"))
	queue.releaseIf(everyKey)
	assert.False(t, queue.any() && len(queue.list(everyKey)) > 0)
	for _, key := range []string{"a/1", "a/2", "b/1"} {
		assert.ErrorIs(t, q.find(key), ErrQuarantined)
		assert.ErrorContains(t, q.find(key), key)
	}
	store.release("a/1")
	store.release("a/2")
	view.release("b/1")
	assert.NoError(t, q.find("a/1"))
	assert.False(t, q.any())
	assert.Nil(t, q.entries)
}

func TestAReaderFindsAnEntryQuarantinedUnderAnotherName(t *testing.T) {
	reflector := quarantinePart{&quarantine{}, byReflector, ""}
	reflector.add("a/1\x00pods", &ObjectError{Key: "a/1", storeKey: "key", Err: errBoom}, errBoom)
	assert.ErrorIs(t, reflector.find("key"), errBoom)
	assert.NoError(t, reflector.find("a/1"))
	reflector.release("a/1\x00pods")
	assert.NoError(t, reflector.find("key"))
}
