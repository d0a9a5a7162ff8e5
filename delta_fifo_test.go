package cache

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// knownMap is the plainest KnownObjects there is: it has no record of what was
// received. A nil object stands for one that cannot be read.
type knownMap map[string]*object

func knowing(objects ...*object) knownMap {
	m := knownMap{}
	for _, o := range objects {
		m[nameOf(o)] = o
	}
	return m
}

func (m knownMap) ListKeys() []string { return slices.Sorted(maps.Keys(m)) }

func (m knownMap) GetByKey(key string) (any, bool, error) {
	obj, ok := m[key]
	if ok && obj == nil {
		return nil, false, errBoom
	}
	return obj, ok, nil
}

// must fails the test at the first error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// said puts a delta in words: "Added a/1@3", "Deleted tombstone a/1@3".
func said(d Delta) string {
	switch obj := d.Object.(type) {
	case BookmarkInfo:
		return fmt.Sprintf("%s @%s", d.Type, obj.ResourceVersion)
	case DeletedFinalStateUnknown:
		version := "nothing"
		if o, ok := obj.Obj.(*object); ok {
			version = "@" + o.ResourceVersion
		}
		return fmt.Sprintf("%s tombstone %s %s", d.Type, obj.Key, version)
	case *object:
		return fmt.Sprintf("%s %s@%s%s", d.Type, nameOf(obj), obj.ResourceVersion, obj.Labels["v"])
	}
	return fmt.Sprintf("%s %v", d.Type, d.Object)
}

func allSaid(deltas []Delta) (words []string) {
	for _, d := range deltas {
		words = append(words, said(d))
	}
	return words
}

// hasPending fails the test rather than to let it wait for ever.
func hasPending(t *testing.T, f *DeltaFIFO) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.False(t, f.log.IsEmpty(), "nothing is pending")
}

// A quiet source sends a bookmark a minute. Fails if each waits for a consumer that hangs, and not
// only the newest.
func TestVersionsWithoutAChangeBetweenThemDoNotAccumulate(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	require.NoError(t, f.Replace([]any{pod("a", "1")}, "1"))
	bookmarks := func(from int) {
		for i := range 1000 {
			f.UpdateResourceVersion(itoa(from + i))
		}
	}
	bookmarks(2)
	require.NoError(t, f.PopBatch(func(deltas []Delta, _ bool) error {
		assert.Equal(t, Delta{Bookmark, BookmarkInfo{"1001"}}, deltas[len(deltas)-1])
		bookmarks(1002)
		assert.Equal(t, "", f.processedVersion())
		return nil
	}, nil))
	assert.Equal(t, "1001", f.processedVersion())
	assert.True(t, f.HasSynced())
	require.NoError(t, f.Add(pod("b", "1")))
	assert.Equal(t, "Added b/1@", popped(t, f))
	assert.Equal(t, "2001", f.processedVersion())
}

// popped takes out one key's changes, in words.
func popped(t *testing.T, f *DeltaFIFO) string {
	t.Helper()
	hasPending(t, f)
	got, err := f.Pop(func(any, bool) error { return nil })
	require.NoError(t, err)
	return strings.Join(allSaid(got.(Deltas)), ", ")
}

// drained pops until nothing is pending.
func drained(t *testing.T, f *DeltaFIFO) (words []string) {
	t.Helper()
	for f.log.HasChanges() {
		words = append(words, popped(t, f))
	}
	return words
}

func TestPopHandsOutAllChangesOfTheKeyThatHasWaitedLongest(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: knowing()})
	must(
		t, f.Add(podAt("a", "1", "1")), f.Add(podAt("a", "2", "2")), f.Update(podAt("a", "1", "3")),
		f.Add(podAt("a", "3", "4")), f.Delete(podAt("a", "1", "5")), f.Add(podAt("a", "1", "6")))
	assert.Equal(t, "Added a/1@1, Updated a/1@3, Deleted a/1@5, Added a/1@6", popped(t, f))
	// A key that comes anew waits behind those that are there.
	must(t, f.Update(podAt("a", "1", "7")))
	assert.Equal(t, []string{"Added a/2@2", "Added a/3@4", "Updated a/1@7"}, drained(t, f))
}

func TestAClosedQueueDeliversItsRemainingChanges(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	must(t, f.Add(podAt("a", "1", "1")))
	assert.False(t, f.IsClosed())
	f.Close()
	f.Close()
	assert.True(t, f.IsClosed())
	must(t, f.Add(podAt("a", "2", "2")))
	assert.Equal(t, []string{"Added a/1@1", "Added a/2@2"}, drained(t, f))
	_, err := f.Pop(func(any, bool) error { return nil })
	assert.ErrorIs(t, err, ErrFIFOClosed)
	assert.ErrorIs(t, f.PopBatch(func([]Delta, bool) error { return nil }, nil), ErrFIFOClosed)
}

// B4 for the queue. Fails if Close does not wake those who wait.
func TestCloseEndsAWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
		began := time.Now()
		ended := make(chan error, 2)
		go func() {
			_, err := f.Pop(func(any, bool) error { return nil })
			ended <- err
		}()
		go func() { ended <- f.PopBatch(func([]Delta, bool) error { return nil }, nil) }()
		synctest.Wait()
		f.Close()
		for range 2 {
			assert.ErrorIs(t, <-ended, ErrFIFOClosed)
		}
		assert.Zero(t, time.Since(began))
	})
}

func TestKeyOfReadsWhatComesOutOfTheQueue(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: func(obj any) (string, error) {
		if obj == "panics" {
			panic(errBoom)
		}
		return obj.(string), nil
	}})
	for name, tc := range map[string]struct {
		obj any
		key string
		err error
	}{
		"an object":   {"x", "x", nil},
		"a tombstone": {DeletedFinalStateUnknown{Key: "x", Obj: "y"}, "x", nil},
		"deltas":      {Deltas{{Added, "x"}, {Updated, "y"}}, "y", nil},
		"of which one is one": {
			Deltas{{Added, "x"}, {Deleted, DeletedFinalStateUnknown{Key: "z"}}}, "z", nil,
		},
		"no deltas":          {Deltas{}, "", ErrZeroLengthDeltasObject},
		"nothing":            {nil, "", errNilObject},
		"a nil pointer":      {(*object)(nil), "", errNilObject},
		"an empty key":       {"", "", errEmptyKey},
		"an empty tombstone": {DeletedFinalStateUnknown{}, "", nil},
		"a panic":            {"panics", "", errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := f.KeyOf(tc.obj)
			assert.Equal(t, tc.key, key)
			assert.ErrorIs(t, err, tc.err)
		})
	}
	var failed KeyError
	_, err := f.KeyOf(Deltas{})
	assert.ErrorAs(t, err, &failed)
}

// send gives the queue an event with its own version.
func send(t *testing.T, f *DeltaFIFO, kind DeltaType, name, version string) {
	t.Helper()
	require.NoError(
		t,
		takeOne(
			queueAccepter{f}, event{kind: kind, obj: podAt("a", name, version), version: version}),
	)
}

// batched takes out one batch, in words.
func batched(t *testing.T, f *DeltaFIFO) []string {
	t.Helper()
	hasPending(t, f)
	return awaitBatch(t, f)
}

// awaitBatch waits for one.
func awaitBatch(t *testing.T, f *DeltaFIFO) (words []string) {
	t.Helper()
	assert.NoError(t, f.PopBatch(func(deltas []Delta, initial bool) error {
		words = allSaid(deltas)
		if initial {
			words = append(words, "initial")
		}
		return nil
	}, nil))
	return words
}

func TestPopBatchKeepsTheOrderAndEndsBeforeASecondChangeOfAKey(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	send(t, f, Added, "1", "1")
	send(t, f, Added, "2", "2")
	send(t, f, Updated, "1", "3")
	send(t, f, Added, "3", "4")
	assert.Equal(t, []string{"Added a/1@1", "Added a/2@2", "Bookmark @2"}, batched(t, f))
	assert.Equal(t, []string{"Updated a/1@3", "Added a/3@4", "Bookmark @4"}, batched(t, f))
	must(t, f.Update(podAt("a", "3", "5")))
	assert.Equal(t, []string{"Updated a/3@5"}, batched(t, f), "no version, no bookmark")
}

// Fails if a batch has room for all keys that wait.
func TestABatchAllocatesForItsOwnChanges(t *testing.T) {
	allocated := func(waiting int) uint64 {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
		const batches = 50
		for i := range batches { // the next change of a key ends a batch, so each is of one change
			must(t, f.Update(podAt("a", "hot", strconv.Itoa(i+1))))
		}
		for i := range waiting {
			must(t, f.Update(podAt("a", strconv.Itoa(i), "1")))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range batches - 1 {
			must(t, f.PopBatch(func(deltas []Delta, _ bool) error {
				assert.Len(t, deltas, 1)
				return nil
			}, nil))
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few := allocated(10)
	const tolerance = 64 << 10 // room for 10,000 keys in each batch would be megabytes
	assert.Less(t, allocated(10_000), 2*few+tolerance)
}

func TestABatchIsOfTheFirstListOrNot(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	must(t, f.Replace([]any{podAt("a", "1", "1"), podAt("a", "2", "2")}, "2"))
	send(t, f, Added, "3", "3")
	assert.Equal(
		t, []string{"Replaced a/1@1", "Replaced a/2@2", "Bookmark @2", "initial"}, batched(t, f))
	assert.Equal(t, []string{"Added a/3@3", "Bookmark @3"}, batched(t, f))

}

// Fails if a version alone counts as nothing pending, or does not wake anybody.
func TestAVersionAloneWakesAConsumerOfBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
		must(t, f.Add(podAt("a", "1", "1")))
		batched(t, f)
		got := make(chan []string)
		for _, version := range []string{"5", "6"} {
			go func() { got <- awaitBatch(t, f) }()
			synctest.Wait()
			f.UpdateResourceVersion(version)
			assert.Equal(t, []string{"Bookmark @" + version}, <-got)
			synctest.Wait()
		}
		f.UpdateResourceVersion("7")
		assert.Equal(t, "6", f.processedVersion(), "it waits for the consumer to come back")
		assert.Equal(t, []string{"Bookmark @7"}, batched(t, f))
		assert.Equal(t, "7", f.processedVersion())
	})
}

// Fails if a version passes because nothing is pending before it, though nobody
// has been handed it.
func TestAVersionThatComesDuringABatchIsHandedOutAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
		send(t, f, Added, "1", "1")
		must(t, f.PopBatch(func([]Delta, bool) error {
			f.UpdateResourceVersion("2")
			return nil
		}, nil))
		assert.Equal(t, "1", f.processedVersion())
		assert.Equal(t, []string{"Bookmark @2"}, batched(t, f))
	})
}

// A consumer that has not come yet may be of either kind.
func TestAVersionBeforeTheFirstConsumerIsKeptForIt(t *testing.T) {
	for name, tc := range map[string]struct {
		take func(f *DeltaFIFO)
	}{
		"batches": {func(f *DeltaFIFO) { assert.Equal(t, []string{"Bookmark @1"}, batched(t, f)) }},
		"keys": {func(f *DeltaFIFO) {
			f.Close()
			_, err := f.Pop(func(any, bool) error { return nil })
			assert.ErrorIs(t, err, ErrFIFOClosed)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			known := &versioned{knownMap: knowing()}
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known})
			must(t, f.Replace(nil, "1"))
			assert.True(t, f.HasSynced(), "an empty list is synced at once")
			assert.Empty(t, f.processedVersion())
			tc.take(f)
			assert.Equal(t, "1", f.processedVersion())
			assert.Equal(t, []string{"1"}, known.notified)
		})
	}
}

// countingMap counts its reads.
type countingMap struct {
	knownMap
	reads int
}

func (m *countingMap) GetByKey(key string) (any, bool, error) {
	m.reads++
	return m.knownMap.GetByKey(key)
}

// The known objects do not count for a first list. Fails if each of its objects is looked up
// nevertheless.
func TestAFirstListDoesNotReadTheKnownObjects(t *testing.T) {
	known := &countingMap{knownMap: knownMap{}}
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known})
	require.NoError(t, f.Replace([]any{pod("a", "1"), pod("a", "2")}, "1"))
	assert.Zero(t, known.reads)
	require.NoError(t, f.Replace([]any{pod("a", "3")}, "2"))
	assert.Equal(t, 1, known.reads)
}

// versioned is a KnownObjects that is notified of versions.
type versioned struct {
	knownMap
	notified []string
	// during, if not nil, is called while it is being delivered.
	during func()
}

func (v *versioned) UpdateResourceVersion(version string) {
	v.notified = append(v.notified, version)
	if v.during != nil {
		v.during()
	}
}

// G11, B16: a version holds when everything before it has been processed, in
// whatever order keys are popped. Fails if a version holds as soon as its own
// record has been processed, or is passed before process returns.
func TestAVersionHoldsOnceAllBeforeItIsProcessed(t *testing.T) {
	known := &versioned{knownMap: knowing()}
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known})
	send(t, f, Added, "1", "1")
	send(t, f, Added, "2", "2")
	send(t, f, Updated, "1", "3")
	send(t, f, Added, "3", "4")
	f.UpdateResourceVersion("5")
	pop := func(want string, process PopProcessFunc) {
		t.Helper()
		got, err := f.Pop(process)
		must(t, err)
		assert.Equal(t, want, said(*got.(Deltas).Newest()))
	}
	pop("Updated a/1@3", func(any, bool) error {
		assert.Empty(t, f.processedVersion())
		return nil
	})
	assert.Equal(t, "1", f.processedVersion(), "2 waits, so 3 does not hold though a/1 is at 3")
	pop("Added a/2@2", func(any, bool) error {
		send(t, f, Updated, "1", "6")
		return nil
	})
	assert.Equal(t, "3", f.processedVersion())
	pop("Added a/3@4", func(any, bool) error { return nil })
	assert.Equal(t, "5", f.processedVersion())
	pop("Updated a/1@6", func(any, bool) error {
		f.UpdateResourceVersion("7")
		assert.Equal(t, "5", f.processedVersion())
		return nil
	})
	assert.Equal(t, "6", f.processedVersion())
	f.Close()
	_, err := f.Pop(func(any, bool) error { return nil })
	assert.ErrorIs(t, err, ErrFIFOClosed)
	assert.Equal(t, "7", f.processedVersion(), "nothing to wait for")
	assert.Equal(t, []string{"1", "3", "5", "6", "7"}, known.notified, "each once, in order")
}

// Fails if a writer waits for KnownObjects, or the turn ends before KnownObjects has been notified.
func TestVersionsAreReportedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := &versioned{knownMap: knowing(), during: func() { time.Sleep(time.Second) }}
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known})
		send(t, f, Added, "1", "1")
		var consumers sync.WaitGroup
		for range 2 {
			consumers.Go(func() {
				for !f.IsClosed() {
					_, _ = f.Pop(func(any, bool) error { return nil })
				}
			})
		}
		synctest.Wait() // one of them is reporting 1
		began := time.Now()
		f.UpdateResourceVersion("2")
		f.UpdateResourceVersion("3")
		assert.Zero(t, time.Since(began))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, []string{"1", "3"}, known.notified)
		f.Close()
		consumers.Wait()
	})
}

func TestAnEventWithoutAKeyIsRejectedAndItsVersionCounts(t *testing.T) {
	f := NewDeltaFIFOWithOptions(
		DeltaFIFOOptions{KeyFunction: func(any) (string, error) { return "", errBoom }})
	err := takeOne(queueAccepter{f}, event{kind: Added, obj: podAt("a", "1", "5"), version: "5"})
	object, ok := errors.AsType[*ObjectError](err)
	require.True(t, ok)
	assert.Equal(t, stageKey, object.Stage)
	assert.Equal(t, "a/1", object.Key)
	assert.Equal(t, "5", object.ResourceVersion)
	assert.Equal(t, errBoom, object.Err)
	f.Close()
	_, err = f.Pop(func(any, bool) error { return nil })
	assert.ErrorIs(t, err, ErrFIFOClosed)
	assert.Equal(t, "5", f.processedVersion())
}

// transforming is a transform that answers by label and counts its calls.
type transforming struct{ calls map[string]int }

func (c *transforming) transform(obj any) (any, error) {
	o := obj.(*object)
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[nameOf(o)+"@"+o.ResourceVersion]++
	switch o.Labels["v"] {
	case "bad":
		return nil, errBoom
	case "panics":
		panic(errBoom)
	case "nil":
		return nil, nil
	case "renamed":
		return podAt("a", "other", o.ResourceVersion), nil
	case "nameless":
		return pod("", ""), nil
	}
	return labelled(o, "!"), nil
}

func TestWhatATransformMadeMustHaveTheSameKey(t *testing.T) {
	var tr transforming
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{Transformer: tr.transform})
	assert.ErrorContains(
		t, f.Add(labelled(podAt("a", "1", "1"), "renamed")),
		`changed the key from "a/1" to "a/other"`)
	assert.ErrorIs(t, f.Add(labelled(podAt("a", "1", "1"), "nameless")), errEmptyKey)
}

// A deletion happens whatever becomes of its final state.
func TestADeletionIsQueuedThoughItsFinalStateCannotBeTransformed(t *testing.T) {
	for label, want := range map[string]string{
		"good": "Deleted a/1@2!", "bad": "Deleted tombstone a/1 @1",
		"panics": "Deleted tombstone a/1 @1", "nil": "Deleted tombstone a/1 @1",
	} {
		t.Run(label, func(t *testing.T) {
			var tr transforming
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{
				Transformer:  tr.transform,
				KnownObjects: knowing(podAt("a", "1", "1")),
			})
			failed, is := errors.AsType[*ObjectError](takeOne(
				queueAccepter{f},
				event{kind: Deleted, obj: labelled(podAt("a", "1", "2"), label), version: "2"}))
			assert.Equal(t, label == "bad" || label == "panics", is)
			if is {
				assert.Equal(t, stageTransform, failed.Stage)
			}
			assert.Empty(t, f.quarantinedObjects())
			assert.Equal(t, []string{want}, drained(t, f))
			assert.Equal(t, "2", f.processedVersion())
		})
	}
	var tr transforming
	f := NewDeltaFIFOWithOptions(
		DeltaFIFOOptions{Transformer: tr.transform, KnownObjects: knowing()})
	must(
		t, takeOne(queueAccepter{f}, event{kind: Deleted, obj: podAt("a", "1", "2"), version: "2"}))
	assert.Empty(t, tr.calls, "nobody gets to see it")
}

// newListedQueue is a queue with a store that records what was received, and
// which holds the objects.
func newListedQueue(t *testing.T, objects ...*object) (*DeltaFIFO, *cache) {
	store := newTagStore()
	for _, o := range objects {
		must(t, store.Add(o))
	}
	return NewDeltaFIFOWithOptions(
		DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true}), store
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

// part gives a replacement a part that is accepted whole.
func part(t *testing.T, r Replacement, p ReplacementPart) {
	t.Helper()
	rejected, err := r.Add(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, rejected)
}

// B8 for the queue. Fails if a listed object is not compared with the newest
// state, or with the wrong one.
func TestARelistLeavesUnchangedObjectsAlone(t *testing.T) {
	f, store := newListedQueue(
		t, podAt("a", "known", "1"), podAt("a", "changed", "1"),
		withUID(podAt("a", "recreated", "1"), "old"))
	var tr transforming
	f.transformer = tr.transform
	send(t, f, Updated, "changed", "2")
	send(t, f, Added, "flying", "3")
	list := append(
		items("known", "1", "changed", "2", "flying", "3", "new", "5"),
		withUID(podAt("a", "recreated", "1"), "new"), pod("a", "bare"))
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
	assert.Equal(
		t, []string{"Replaced a/new@5!", "Replaced a/recreated@1!", "Replaced a/bare@!"},
		drained(t, f))
	assert.Zero(t, tr.calls["a/known@1"], "nor is it transformed")
	assert.Equal(t, 1, tr.calls["a/flying@3"])
	must(t, store.Update(list[2]), store.Update(list[3]), store.Update(list[4]))
	must(t, f.Delete(podAt("a", "flying", "7")), f.Replace(list, "8"))
	assert.Equal(
		t, []string{"Deleted a/flying@7!, Replaced a/flying@3!", "Replaced a/bare@!"},
		drained(t, f), "one whose deletion is queued is not unchanged, nor one without a version")
	must(t, f.Replace(nil, "9"), f.Replace(list[:1], "10"))
	assert.Contains(
		t, drained(t, f), "Deleted tombstone a/known @1, Replaced a/known@1!",
		"it comes back as it was")
}

func TestARelistIsQueuedAtItsCommitInOnePiece(t *testing.T) {
	f, store := newListedQueue(t, podAt("a", "1", "1"), podAt("a", "2", "2"))
	must(t, f.Replace(items("1", "1", "2", "2"), "2"))
	assert.Contains(t, batched(t, f), "initial")
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("1", "1", "3", "3")})
	part(t, r, ReplacementPart{Items: items("4", "4")})
	assert.False(t, f.log.HasChanges())
	must(t, r.Commit(t.Context(), "5"))
	assert.Equal(
		t, []string{"Replaced a/3@3", "Replaced a/4@4", "Deleted tombstone a/2 @2", "Bookmark @5"},
		batched(t, f))

	// Aborted: nothing has happened.
	must(t, store.Replace(items("1", "1", "3", "3", "4", "4"), "5"))
	r = f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("9", "9")})
	r.Abort()
	r.Abort()
	assert.False(t, f.log.HasChanges())
}

// G6, B6 in parts: what could not be applied stays as it was. Fails if a rejected or
// kept key does not count as listed.
func TestWhatAListCouldNotBringStays(t *testing.T) {
	for _, first := range []bool{true, false} {
		f, _ := newListedQueue(
			t, podAt("a", "kept", "1"), podAt("a", "bad", "1"), podAt("a", "deleted", "1"),
			podAt("a", "nil", "1"))
		var tr transforming
		f.transformer = tr.transform
		if !first {
			must(t, f.Add(podAt("a", "x", "1")))
			drained(t, f)
		}
		r := f.BeginReplace(ReplaceOptions{})
		rejected, err := r.Add(t.Context(), ReplacementPart{
			Items: []any{
				labelled(podAt("a", "bad", "2"), "bad"), pod("", ""), podAt("a", "new", "3"),
				labelled(podAt("a", "nil", "2"), "nil"),
				podAt("a", "turns", "3"), labelled(podAt("a", "turns", "4"), "nil"),
			},
			Retain:  []any{podAt("a", "kept", "2"), pod("", ""), nil},
			Deleted: []any{pod("", "")},
		})
		must(t, err)
		require.Len(t, rejected, 2)
		assert.Equal(
			t, []string{stageKey, stageKey}, []string{rejected[0].Stage, rejected[1].Stage})
		rejected, err = splitObjectErrors(r.Commit(t.Context(), "4"))
		must(t, err)
		require.Len(t, rejected, 1)
		assert.Equal(t, stageTransform, rejected[0].Stage)
		left := drained(t, f)
		assert.Contains(t, left, "Replaced a/new@3!")
		assert.Contains(t, left, "Deleted tombstone a/deleted @1")
		assert.Contains(t, left, "Deleted tombstone a/nil @1")
		assert.NotContains(t, left, "Replaced a/turns@3!")
		assert.NotContains(t, left, "Deleted tombstone a/kept @1")
		assert.NotContains(t, left, "Deleted tombstone a/bad @1")
		assert.Equal(t, []string{"a/bad"}, heldKeys(f))
	}
}

// A stream may take back what it sent before it ends.
func TestAnObjectDeletedBeforeTheEndOfAListIsNotListed(t *testing.T) {
	f, _ := newListedQueue(t)
	var tr transforming
	f.transformer = tr.transform
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("4", "4", "5", "5", "4", "7")})
	part(t, r, ReplacementPart{Deleted: items("4", "8")})
	part(t, r, ReplacementPart{Items: items("6", "6"), Deleted: items("6", "9")})
	must(t, r.Commit(t.Context(), "9"))
	assert.Equal(t, []string{"Replaced a/5@5!"}, drained(t, f))
}

// G7: the last to commit decides. Fails if a list does not undo a direct deletion during the list,
// of an object that it has in the state last received.
func TestAListUndoesADeletionThatItOverlaps(t *testing.T) {
	f, store := newListedQueue(t, podAt("a", "1", "1"))
	must(t, f.Replace(items("1", "1"), "1"))
	drained(t, f)
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("1", "1")})
	must(t, f.Delete(podAt("a", "1", "1")))
	must(t, r.Commit(t.Context(), "2"))
	assert.Equal(t, []string{"Deleted a/1@1, Replaced a/1@1"}, drained(t, f))

	list := store.BeginReplace(ReplaceOptions{})
	part(t, list, ReplacementPart{Items: items("1", "1")})
	must(t, store.Delete(podAt("a", "1", "1")), list.Commit(t.Context(), "2"))
	assert.Equal(t, []string{"a/1"}, store.ListKeys())
}

func TestAKnownObjectThatCannotBeReadIsDeletedWithAnEmptyTombstone(t *testing.T) {
	for name, replace := range map[string]func(*DeltaFIFO) error{
		"in one call": func(f *DeltaFIFO) error { return f.Replace(nil, "1") },
		"in parts": func(f *DeltaFIFO) error {
			return f.BeginReplace(ReplaceOptions{}).Commit(bg, "1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewDeltaFIFOWithOptions(
				DeltaFIFOOptions{KnownObjects: knownMap{"a/1": nil, "a/2": podAt("a", "2", "2")}})
			assertUnread(t, "a/1", replace(f))
			assert.Equal(
				t, []string{"Deleted tombstone a/1 nothing", "Deleted tombstone a/2 @2"},
				drained(t, f))
			assert.Empty(
				t, f.quarantinedObjects(), "nothing is quarantined: the deletion was applied")
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
	assert.Equal(t, causeInvalidObject, CauseOf(objects[0]))
	var store *StoreError
	require.ErrorAs(t, objects[0], &store)
	assert.Equal(t, StoreError{Op: "GetByKey", Name: key, Err: errBoom}, *store)
}

// brittle is an object whose metadata may panic.
type brittle struct {
	metav1.ObjectMeta
	broken bool
}

func (b *brittle) GetNamespace() string {
	if b.broken {
		panic(errBoom)
	}
	return b.Namespace
}

// A queue without a KeyFunction makes keys from the metadata that it has read. Fails if they, or
// the refusal of an object without a key, differ from those of a function that it has to call.
func TestTheUsualKeysAreThoseOfTheFunction(t *testing.T) {
	for name, obj := range map[string]any{
		"an object":     podAt("a", "1", "1"),
		"no namespace":  podAt("", "1", "1"),
		"brittle":       &brittle{ObjectMeta: metav1.ObjectMeta{Name: "1"}},
		"broken":        &brittle{broken: true},
		"no name":       podAt("", "", "1"),
		"nil":           nil,
		"a nil pointer": (*object)(nil),
		"a key":         ExplicitKey("a/1"),
		"no metadata":   7,
		"a tombstone":   DeletedFinalStateUnknown{Key: "a/1", Obj: podAt("a", "1", "1")},
		"deltas":        Deltas{{Added, podAt("a", "1", "1")}},
	} {
		t.Run(name, func(t *testing.T) {
			usual := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
			wrapper := func(obj any) (string, error) { return MetaNamespaceKeyFunc(obj) }
			other := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KeyFunction: wrapper})
			require.True(t, usual.keys.byName)
			require.False(t, other.keys.byName)
			got, err := usual.eventKey(obj)
			want, wanted := other.eventKey(obj)
			if wanted != nil {
				var panicked *PanicError
				assert.EqualError(t, err, wanted.Error())
				assert.Equal(t, errors.As(wanted, &panicked), errors.As(err, &panicked))
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}
