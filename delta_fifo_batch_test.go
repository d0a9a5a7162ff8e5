package cache

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// send gives the queue an event with its own version.
func send(t *testing.T, f *DeltaFIFO, kind DeltaType, name, version string) {
	t.Helper()
	require.NoError(t, takeOne(f, event{kind: kind, obj: podAt("a", name, version), version: version}))
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

// queued is one change of a batch.
type queued struct {
	Delta
	key      table.Key
	received Received
}

// batch is what a controller gets.
type batch struct {
	changes []queued
	version string
	initial bool
}

func popPending(f *DeltaFIFO, process func(batch) error) error {
	return f.popPending(nil, func(changes []change, version string, initial bool) error {
		b := batch{changes: []queued{}, version: version, initial: initial}
		for _, c := range changes {
			b.changes = append(b.changes, queued{Delta{c.kind, c.object}, c.key, c.says.received})
		}
		return process(b)
	})
}

// pendingKeys are the keys of pending changes, in the order in which Pop would take them.
func (l *deltaLog) pendingKeys() (keys []string) {
	for at := l.head; at < l.end(); at++ {
		if r := l.get(at); r.stage == pending && !r.isVersion() && !slices.Contains(keys, r.key.String()) {
			keys = append(keys, r.key.String())
		}
	}
	return keys
}

// pendingBatch takes out what our controller would get.
func pendingBatch(t *testing.T, f *DeltaFIFO) (b batch) {
	t.Helper()
	hasPending(t, f)
	require.NoError(t, popPending(f, func(got batch) error {
		b = got
		return nil
	}))
	return b
}

func wordsOf(b batch) (words []string) {
	for _, c := range b.changes {
		words = append(words, said(c.Delta))
	}
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

func TestABatchIsOfTheFirstListOrNot(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	must(t, f.Replace([]any{podAt("a", "1", "1"), podAt("a", "2", "2")}, "2"))
	send(t, f, Added, "3", "3")
	assert.Equal(t, []string{"Replaced a/1@1", "Replaced a/2@2", "Bookmark @2", "initial"}, batched(t, f))
	assert.Equal(t, []string{"Added a/3@3", "Bookmark @3"}, batched(t, f))

	f = NewDeltaFIFOWithOptions(DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	must(t, f.Replace([]any{podAt("a", "1", "1")}, "2"))
	send(t, f, Updated, "1", "3")
	b := pendingBatch(t, f)
	assert.True(t, b.initial)
	assert.Equal(t, "2", b.version)
	assert.Equal(t, []string{"Replaced a/1@1"}, wordsOf(b))
	b = pendingBatch(t, f)
	assert.False(t, b.initial)
	assert.Equal(t, []string{"Updated a/1@3"}, wordsOf(b))
}

func TestOurControllerGetsAllThatIsPending(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	send(t, f, Added, "1", "1")
	send(t, f, Updated, "1", "2")
	send(t, f, Deleted, "1", "3")
	send(t, f, Added, "2", "4")
	f.UpdateResourceVersion("5")
	b := pendingBatch(t, f)
	assert.Equal(t, []string{"Added a/1@1", "Updated a/1@2", "Deleted a/1@3", "Added a/2@4"}, wordsOf(b))
	assert.Equal(t, "5", b.version)
	assert.Equal(t, "4", b.changes[3].received.ResourceVersion)
	assert.Equal(t, "a/2", b.changes[3].key.String())
}

func TestPopBatchWithoutABatchFunctionIsPop(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	send(t, f, Added, "1", "1")
	send(t, f, Added, "2", "2")
	send(t, f, Updated, "1", "3")
	var got []string
	must(t, f.PopBatch(nil, func(obj any, _ bool) error {
		got = allSaid(obj.(Deltas))
		return nil
	}))
	assert.Equal(t, []string{"Added a/1@1", "Updated a/1@3"}, got)
	f.Close()
	assert.ErrorIs(t, f.PopBatch(nil, func(any, bool) error { return errBoom }), errBoom)
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
		must(t, popPending(f, func(batch) error {
			f.UpdateResourceVersion("2")
			return nil
		}))
		assert.Equal(t, "1", f.processedVersion())
		assert.Equal(t, "2", pendingBatch(t, f).version)
	})
}

func TestAVersionToldTwiceIsToldOnce(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	send(t, f, Added, "1", "1")
	assert.Equal(t, []string{"Added a/1@1", "Bookmark @1"}, batched(t, f))
	f.UpdateResourceVersion("1")
	f.UpdateResourceVersion("")
	assert.Zero(t, f.log.pending)
}

// A consumer that has not come yet may be of either kind.
func TestAVersionBeforeTheFirstConsumerIsKeptForIt(t *testing.T) {
	for name, tc := range map[string]struct {
		take func(f *DeltaFIFO)
		told []string
	}{
		"batches": {func(f *DeltaFIFO) { assert.Equal(t, []string{"Bookmark @1", "initial"}, batched(t, f)) }, []string{"1"}},
		"keys": {func(f *DeltaFIFO) {
			f.Close()
			_, err := f.Pop(func(any, bool) error { return nil })
			assert.ErrorIs(t, err, ErrFIFOClosed)
		}, []string{"1"}},
		"our controller": {func(f *DeltaFIFO) { assert.Equal(t, "1", pendingBatch(t, f).version) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			known := &versioned{knownMap: knowing()}
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known})
			must(t, f.Replace(nil, "1"))
			assert.True(t, f.HasSynced(), "an empty list is synced at once")
			assert.Empty(t, f.processedVersion())
			tc.take(f)
			assert.Equal(t, "1", f.processedVersion())
			assert.Equal(t, tc.told, known.told)
		})
	}
}

// versioned is a KnownObjects that is told of versions.
type versioned struct {
	knownMap
	told []string
	// during, if not nil, is called while it is being told.
	during func()
}

func (v *versioned) UpdateResourceVersion(version string) {
	v.told = append(v.told, version)
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
	assert.Equal(t, "7", f.processedVersion())
	f.UpdateResourceVersion("8")
	assert.Equal(t, "8", f.processedVersion(), "nothing to wait for")
	assert.Equal(t, []string{"1", "3", "5", "7", "8"}, known.told, "told of each once, in order")
}

func TestKnownObjectsAreToldOfTheVersionOfABatchByTheQueueOrByOurController(t *testing.T) {
	known := &versioned{knownMap: knowing()}
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known})
	send(t, f, Added, "1", "1")
	batched(t, f)
	send(t, f, Added, "2", "2")
	pendingBatch(t, f)
	assert.Equal(t, "2", f.processedVersion())
	assert.Equal(t, []string{"1"}, known.told)
}

// Two who tell of versions never overtake each other. Fails if the turn ends
// before KnownObjects has been told.
func TestVersionsAreToldInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := &versioned{knownMap: knowing(), during: func() { time.Sleep(time.Second) }}
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known})
		send(t, f, Added, "1", "1")
		done := make(chan struct{})
		go func() {
			popped(t, f)
			close(done)
		}()
		synctest.Wait() // it is telling of 1
		began := time.Now()
		f.UpdateResourceVersion("2")
		f.UpdateResourceVersion("3")
		assert.Zero(t, time.Since(began), "who puts something in does not wait for it")
		<-done
		assert.Equal(t, []string{"1", "3"}, known.told)
		f.UpdateResourceVersion("4")
		assert.Equal(t, 3*time.Second, time.Since(began))
		assert.Equal(t, []string{"1", "3", "4"}, known.told)
	})
}

// What a stopped consumer hands back is as if it had never been handed out. Fails
// if it counts as processed.
func TestWhatIsHandedBackIsStillPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := &versioned{knownMap: knowing()}
		f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: known})
		must(t, f.Replace([]any{podAt("a", "1", "1"), podAt("a", "2", "2")}, "2"))
		drop := func(batch) error { return errDropped }
		assert.ErrorIs(t, popPending(f, drop), errDropped)
		_, err := f.Pop(func(any, bool) error {
			must(t, f.Update(podAt("a", "1", "3")))
			return errDropped
		})
		assert.ErrorIs(t, err, errDropped)
		assert.False(t, f.HasSynced())
		assert.Empty(t, f.processedVersion())
		assert.Equal(t, []string{"Sync a/1@1, Updated a/1@3", "Sync a/2@2"}, drained(t, f))
		assert.True(t, f.HasSynced())
		assert.Equal(t, []string{"2"}, known.told)
	})
}
