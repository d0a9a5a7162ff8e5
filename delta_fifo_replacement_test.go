package cache

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// newListedQueue is a queue with a store that records what was received, and
// which holds the objects.
func newListedQueue(t *testing.T, objects ...*object) (*DeltaFIFO, *cache) {
	store := newTagStore()
	for _, o := range objects {
		must(t, store.Add(o))
	}
	return NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true}), store
}

func withUID(o *object, uid types.UID) *object {
	o = o.DeepCopy()
	o.UID = uid
	return o
}

// items are objects of namespace a with versions, as a list: name, version, ...
func items(namesAndVersions ...string) (list []any) {
	for i := 0; i < len(namesAndVersions); i += 2 {
		list = append(list, podAt("a", namesAndVersions[i], namesAndVersions[i+1]))
	}
	return list
}

// part gives a replacement a part that is taken whole.
func part(t *testing.T, r Replacement, p ReplacementPart) {
	t.Helper()
	rejected, err := r.Part(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, rejected)
}

func TestAListIsReplacedOrSyncByOption(t *testing.T) {
	for replaced, want := range map[bool]string{true: "Replaced a/1@1", false: "Sync a/1@1"} {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{EmitDeltaTypeReplaced: replaced})
		must(t, f.Replace(items("1", "1"), "1"))
		assert.Equal(t, []string{want}, drained(t, f))
	}
}

// A deletion that is being processed is not told again, though the consumer still
// holds the object.
func TestARelistDoesNotDeleteTwice(t *testing.T) {
	f, _ := newListedQueue(t, podAt("a", "1", "1"))
	must(t, f.Delete(podAt("a", "1", "2")))
	_, err := f.Pop(func(any, bool) error { return f.Replace(nil, "2") })
	must(t, err)
	assert.Empty(t, drained(t, f))
}

// B8 for the queue. Fails if a listed object is not compared with the newest
// state, or with the wrong one.
func TestARelistLeavesUnchangedObjectsAlone(t *testing.T) {
	f, store := newListedQueue(t, podAt("a", "known", "1"), podAt("a", "changed", "1"), withUID(podAt("a", "recreated", "1"), "old"))
	var tr transforming
	f.transformer = tr.transform
	send(t, f, Updated, "changed", "2")
	send(t, f, Added, "flying", "3")
	list := append(items("known", "1", "changed", "2", "flying", "3", "new", "5"), withUID(podAt("a", "recreated", "1"), "new"), pod("a", "bare"))
	relist := func() error { return f.Replace(list, "6") }
	pops := 0
	for pops < 2 {
		_, err := f.Pop(func(obj any, _ bool) error {
			if pops++; pops == 2 {
				return relist()
			}
			return store.Update(obj.(Deltas).Newest().Object)
		})
		must(t, err)
	}
	assert.Equal(t, []string{"Replaced a/new@5!", "Replaced a/recreated@1!", "Replaced a/bare@!"}, drained(t, f))
	assert.Zero(t, tr.calls["a/known@1"], "nor is it transformed")
	assert.Equal(t, 1, tr.calls["a/flying@3"])
	must(t, store.Update(list[2]), store.Update(list[3]), store.Update(list[4]))
	must(t, f.Delete(podAt("a", "flying", "7")), f.Replace(list, "8"))
	assert.Equal(t, []string{"Deleted a/flying@7!, Replaced a/flying@3!", "Replaced a/bare@!"}, drained(t, f),
		"one whose deletion is queued is not unchanged, nor one without a version")
	must(t, f.Replace(nil, "9"), f.Replace(list[:1], "10"))
	assert.Contains(t, drained(t, f), "Deleted tombstone a/known @1, Replaced a/known@1!", "it comes back as it was")
}

func TestWithoutARecordOfWhatWasReceivedEveryListedObjectIsTold(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: knowing(podAt("a", "1", "1"))})
	must(t, f.Replace(items("1", "1"), "1"))
	assert.Equal(t, []string{"Sync a/1@1"}, drained(t, f))
}

func TestAFirstListIsSeenPartByPart(t *testing.T) {
	f, _ := newListedQueue(t, podAt("a", "before", "1"))
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("1", "2", "2", "3")})
	b := pendingBatch(t, f)
	assert.Equal(t, []string{"Replaced a/1@2", "Replaced a/2@3"}, wordsOf(b))
	assert.True(t, b.initial)
	assert.Empty(t, b.version)
	assert.False(t, f.HasSynced())
	part(t, r, ReplacementPart{Items: items("3", "4")})
	must(t, r.Commit(t.Context(), "5"))
	b = pendingBatch(t, f)
	assert.Equal(t, []string{"Replaced a/3@4", "Deleted tombstone a/before @1"}, wordsOf(b))
	assert.True(t, b.initial)
	assert.Equal(t, "5", b.version)
	assert.True(t, f.HasSynced())
}

func TestAnAbortedFirstListStaysUntilTheNextOne(t *testing.T) {
	f, store := newListedQueue(t)
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("1", "1", "2", "2")})
	for _, c := range pendingBatch(t, f).changes {
		must(t, store.Add(c.Object))
	}
	part(t, r, ReplacementPart{Items: items("3", "3")})
	r.Abort()
	assert.False(t, f.HasSynced())
	again := f.BeginReplace(ReplaceOptions{})
	part(t, again, ReplacementPart{Items: items("1", "1", "2", "5")})
	must(t, again.Commit(t.Context(), "5"))
	b := pendingBatch(t, f)
	assert.Equal(t, []string{"Replaced a/3@3", "Replaced a/2@5", "Deleted tombstone a/3 @3"}, wordsOf(b))
	assert.True(t, b.initial, "it is still the first list")
	assert.True(t, f.HasSynced())
}

func TestARelistIsQueuedAtItsCommitInOnePiece(t *testing.T) {
	f, store := newListedQueue(t, podAt("a", "1", "1"), podAt("a", "2", "2"))
	must(t, f.Replace(items("1", "1", "2", "2"), "2"))
	assert.True(t, pendingBatch(t, f).initial)
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("1", "1", "3", "3")})
	part(t, r, ReplacementPart{Items: items("4", "4")})
	assert.Zero(t, f.log.pending)
	must(t, r.Commit(t.Context(), "5"))
	b := pendingBatch(t, f)
	assert.Equal(t, []string{"Replaced a/3@3", "Replaced a/4@4", "Deleted tombstone a/2 @2"}, wordsOf(b))
	assert.Equal(t, "5", b.version)
	assert.False(t, b.initial)

	// Aborted: nothing has happened.
	must(t, store.Replace(items("1", "1", "3", "3", "4", "4"), "5"))
	r = f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("9", "9")})
	r.Abort()
	r.Abort()
	assert.Zero(t, f.log.pending)
}

func TestAReplacementThatIsOverTakesNothing(t *testing.T) {
	f, _ := newListedQueue(t)
	for _, end := range []func(Replacement){Replacement.Abort, func(r Replacement) { must(t, r.Commit(bg, "1")) }} {
		r := f.BeginReplace(ReplaceOptions{})
		end(r)
		_, err := r.Part(t.Context(), ReplacementPart{Items: items("1", "1")})
		assert.Error(t, err)
		assert.Error(t, r.Commit(t.Context(), "2"))
		r.Abort()
	}
	assert.Empty(t, drained(t, f))
}

// G6, B6 in parts: what could not be taken stays as it was. Fails if a rejected or
// kept key does not count as listed.
func TestWhatAListCouldNotBringStays(t *testing.T) {
	for _, first := range []bool{true, false} {
		f, _ := newListedQueue(t, podAt("a", "kept", "1"), podAt("a", "bad", "1"), podAt("a", "gone", "1"), podAt("a", "nil", "1"))
		var tr transforming
		f.transformer = tr.transform
		if !first {
			must(t, f.Add(podAt("a", "x", "1")))
			drained(t, f)
		}
		r := f.BeginReplace(ReplaceOptions{})
		rejected, err := r.Part(t.Context(), ReplacementPart{
			Items: []any{
				labelled(podAt("a", "bad", "2"), "bad"), pod("", ""), podAt("a", "new", "3"), labelled(podAt("a", "nil", "2"), "nil"),
				podAt("a", "turns", "3"), labelled(podAt("a", "turns", "4"), "nil"),
			},
			Keep: []any{podAt("a", "kept", "2"), pod("", ""), nil},
			Gone: []any{pod("", "")},
		})
		must(t, err)
		require.Len(t, rejected, 3)
		assert.Equal(t, []Stage{StageTransform, StageKey, StageKey}, []Stage{rejected[0].Stage, rejected[1].Stage, rejected[2].Stage})
		must(t, r.Commit(t.Context(), "4"))
		left := drained(t, f)
		assert.Contains(t, left, "Replaced a/new@3!")
		assert.Contains(t, left, "Deleted tombstone a/gone @1")
		assert.Contains(t, left, "Deleted tombstone a/nil @1")
		assert.NotContains(t, left, "Replaced a/turns@3!")
		assert.NotContains(t, left, "Deleted tombstone a/kept @1")
		assert.NotContains(t, left, "Deleted tombstone a/bad @1")
		assert.Equal(t, []string{"a/bad"}, heldKeys(f))
	}
}

// A stream may take back what it sent before it ends.
func TestWhatIsGoneBeforeTheEndOfAListIsNotListed(t *testing.T) {
	f, _ := newListedQueue(t)
	var tr transforming
	f.transformer = tr.transform
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("1", "1", "2", "2", "3", "3")})
	rejected, err := r.Part(t.Context(), ReplacementPart{Gone: []any{
		podAt("a", "1", "4"), labelled(podAt("a", "2", "5"), "bad"), podAt("a", "never", "6"),
	}})
	must(t, err)
	assert.Len(t, rejected, 1)
	must(t, r.Commit(t.Context(), "6"))
	assert.Equal(t, []string{
		"Replaced a/1@1!, Deleted a/1@4!", "Replaced a/2@2!, Deleted tombstone a/2 @2", "Replaced a/3@3!",
	}, drained(t, f))
	assert.Empty(t, f.quarantined())

	// In a relist it has not been seen yet.
	r = f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("4", "4", "5", "5", "4", "7")})
	part(t, r, ReplacementPart{Gone: items("4", "8")})
	part(t, r, ReplacementPart{Items: items("6", "6"), Gone: items("6", "9")})
	must(t, r.Commit(t.Context(), "9"))
	assert.Equal(t, []string{"Replaced a/5@5!"}, drained(t, f))
}

func TestAKeyThatIsListedTwiceIsToldTwice(t *testing.T) {
	f, _ := newListedQueue(t)
	must(t, f.Replace(items("1", "1", "1", "2", "1", "2"), "2"))
	assert.Equal(t, []string{"Replaced a/1@1, Replaced a/1@2"}, drained(t, f), "but not if nothing has changed")
}

// What the consumer's store holds back is forgotten with its key, though nobody
// else knows the key. Fails if only what is queued or known can be deleted.
func TestWhatTheConsumerHoldsBackCanBeDeleted(t *testing.T) {
	for name, remove := range map[string]func(*DeltaFIFO) error{
		"an event": func(f *DeltaFIFO) error { return f.Delete(podAt("a", "1", "2")) },
		"a relist": func(f *DeltaFIFO) error { return f.Replace(nil, "2") },
	} {
		t.Run(name, func(t *testing.T) {
			f, store := newListedQueue(t)
			require.Error(t, store.Add(tagged(podAt("a", "1", "1"), "bad")))
			must(t, remove(f))
			must(t, popPending(f, func(b batch) error {
				must(t, remove(f))
				applyBatch(store, context.Background(), b, true, nil)
				return nil
			}))
			assert.Empty(t, store.quarantined())
			assert.Zero(t, len(f.log.pendingKeys()), "once is enough")
			must(t, remove(f))
			assert.Zero(t, len(f.log.pendingKeys()))
		})
	}
}

func TestAKnownObjectThatCannotBeReadIsDeletedWithAnEmptyTombstone(t *testing.T) {
	for name, replace := range map[string]func(*DeltaFIFO) error{
		"in one call": func(f *DeltaFIFO) error { return f.Replace(nil, "1") },
		"in parts":    func(f *DeltaFIFO) error { return f.BeginReplace(ReplaceOptions{}).Commit(bg, "1") },
	} {
		t.Run(name, func(t *testing.T) {
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: knownMap{"a/1": nil, "a/2": podAt("a", "2", "2")}})
			assertUnread(t, "a/1", replace(f))
			assert.Equal(t, []string{"Deleted tombstone a/1 nothing", "Deleted tombstone a/2 @2"}, drained(t, f))
			assert.Empty(t, f.quarantined(), "nothing is held back: the deletion was taken")
		})
	}
}

// assertUnread checks that an error says of one object that KnownObjects could not return
// it, and nothing else.
func assertUnread(t *testing.T, key string, err error) {
	t.Helper()
	objects, other := splitObjectErrors(err)
	require.NoError(t, other)
	require.Len(t, objects, 1)
	assert.Equal(t, key, objects[0].Key)
	assert.Equal(t, CauseObject, CauseOf(objects[0]))
	var store *StoreError
	require.ErrorAs(t, objects[0], &store)
	assert.Equal(t, StoreError{Op: "GetByKey", Name: key, Err: errBoom}, *store)
}
