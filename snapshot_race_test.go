package cache

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pairWriter writes two objects at full speed, a before b, in each way in which a source's
// changes get into a store, and readers check what they see of it.
type pairWriter struct {
	store *cache
	// version is the last one that was written.
	version int
	// others are how many more objects a batch has.
	others int
}

func (w *pairWriter) state(name string) *object {
	return tagged(podAt("a", name, itoa(w.version)), itoa(w.version))
}

// events writes both, each with its version: the store's is that of the newer.
func (w *pairWriter) events() error {
	w.version++
	if err := takeOne(w.store, event{kind: Updated, obj: w.state("a"), version: itoa(w.version)}); err != nil {
		return err
	}
	w.version++
	return takeOne(w.store, event{kind: Updated, obj: w.state("b"), version: itoa(w.version)})
}

// batch writes both, and others, in one write.
func (w *pairWriter) batch() error {
	w.version++
	b := batch{version: itoa(w.version), changes: []queued{changeOf(Updated, w.state("a"))}}
	for i := range w.others {
		b.changes = append(b.changes, changeOf(Updated, w.state("other-"+itoa(i))))
	}
	b.changes = append(b.changes, changeOf(Updated, w.state("b")))
	for _, o := range applyBatch(w.store, bg, b, false, nil) {
		if o.err != nil {
			return o.err
		}
	}
	return nil
}

func (w *pairWriter) replace() error {
	w.version++
	return w.store.Replace([]any{w.state("a"), w.state("b")}, itoa(w.version))
}

// serialOf is an object's version; 0 if there is none.
func serialOf(obj any) int {
	n, _ := strconv.Atoi(receivedOf(obj).ResourceVersion)
	return n
}

// sees is nil if a snapshot is of one moment: no later write without an earlier one, and
// objects, index and version together. whole says that both objects are written in one.
func (w *pairWriter) sees(s Snapshot, whole bool) error {
	a, _ := s.Get("a/a")
	b, _ := s.Get("a/b")
	version := itoa(max(serialOf(a), serialOf(b)))
	switch {
	case serialOf(b) > serialOf(a)+1, whole && serialOf(a) != serialOf(b):
		return fmt.Errorf("b is at version %d, and a, which was written before it, at %d", serialOf(b), serialOf(a))
	case s.ResourceVersion() != version:
		return fmt.Errorf("its version is %q, its newest object is at %s", s.ResourceVersion(), version)
	}
	found, err := s.ByIndex(tagIndex, itoa(serialOf(a)))
	if err != nil || !slices.Contains(found, a) {
		return fmt.Errorf("the index does not have a under its tag %d (%v)", serialOf(a), err)
	}
	if stale, _ := s.ByIndex(tagIndex, itoa(serialOf(a)-2)); len(stale) > 0 {
		return fmt.Errorf("the index has %s under the tag %d", receivedOf(stale[0]).ResourceVersion, serialOf(a)-2)
	}
	return nil
}

// race writes so often, while two readers look as often as they can.
func race(t *testing.T, writes int, write, look func() error) {
	t.Helper()
	var readers, begun sync.WaitGroup
	var over atomic.Bool
	var looks atomic.Int64
	failures := make(chan error, 2)
	for range cap(failures) {
		begun.Add(1)
		readers.Go(func() {
			failure := look()
			begun.Done()
			for !over.Load() && failure == nil {
				looks.Add(1)
				failure = look()
			}
			failures <- failure
		})
	}
	begun.Wait()
	for range writes {
		if err := write(); err != nil {
			t.Error(err)
			break
		}
	}
	over.Store(true)
	readers.Wait()
	for range cap(failures) {
		if failure := <-failures; failure != nil {
			t.Error(failure)
		}
	}
	t.Logf("%d writes, %d looks", writes, looks.Load())
}

// G10: at full speed no snapshot shows what was written later without what was written
// earlier, and its version is that of what it shows. Fails if the version changes before the
// write or after it, or if a reader sees a write that is half done.
func TestNoSnapshotShowsALaterWriteWithoutAnEarlierOne(t *testing.T) {
	newPair := func(t *testing.T, others int) *pairWriter {
		w := &pairWriter{store: newTagStore(), others: others}
		require.NoError(t, w.replace())
		return w
	}
	t.Run("event by event", func(t *testing.T) {
		w := newPair(t, 0)
		race(t, 10_000, w.events, func() error { return w.sees(w.store.Snapshot(), false) })
	})
	for others, writes := range map[int]int{0: 20_000, 100: 100} {
		t.Run(fmt.Sprintf("batches of %d", others+2), func(t *testing.T) {
			w := newPair(t, others)
			race(t, writes, w.batch, func() error { return w.sees(w.store.Snapshot(), true) })
		})
	}
	t.Run("replacements", func(t *testing.T) {
		w := newPair(t, 0)
		race(t, 1000, w.replace, func() error { return w.sees(w.store.Snapshot(), true) })
	})
}

// G10: of a batch, or a replacement, a reader sees all or nothing: in one answer of List or
// of an index, and in several of Get, in whatever order it asks. Fails if a batch is shown a
// change at a time.
func TestABatchIsSeenWholeOrNotAtAll(t *testing.T) {
	for _, size := range []struct{ others, writes int }{{0, 8000}, {100, 100}} {
		w := &pairWriter{store: newTagStore(), others: size.others}
		require.NoError(t, w.batch())
		write := w.batch
		if size.others == 0 {
			write = func() error {
				if w.version%8 == 0 {
					return w.replace()
				}
				return w.batch()
			}
		}
		batches := fmt.Sprintf("batches of %d, ", size.others+2)
		t.Run(batches+"Get", func(t *testing.T) { race(t, size.writes, write, w.getsInOrder) })
		t.Run(batches+"List", func(t *testing.T) {
			race(t, size.writes/10, write, func() error { return oneVersion(w.store.List()) })
		})
		t.Run(batches+"ByIndex", func(t *testing.T) { race(t, size.writes/10, write, w.findsWhole) })
	}
}

// getsInOrder gets what a batch has first, what it has last, and the first again: each must
// be as new as the one before.
func (w *pairWriter) getsInOrder() error {
	before := 0
	for _, key := range []string{"a/a", "a/b", "a/a"} {
		obj, _, _ := w.store.GetByKey(key)
		now := serialOf(obj)
		if now < before {
			return fmt.Errorf("%s is at version %d, and what was got before it at %d", key, now, before)
		}
		before = now
	}
	return nil
}

// findsWhole asks the index.
func (w *pairWriter) findsWhole() error {
	a, _, _ := w.store.GetByKey("a/a")
	found, err := w.store.ByIndex(tagIndex, receivedOf(a).ResourceVersion)
	if len(found) != 0 && len(found) != w.others+2 {
		return fmt.Errorf("%d of %d objects of a batch are in the index", len(found), w.others+2)
	}
	if values := w.store.ListIndexFuncValues(tagIndex); len(values) != 1 {
		return fmt.Errorf("the index has the tags of several batches: %q", values)
	}
	return err
}

func oneVersion(list []any) error {
	for _, obj := range list {
		if serialOf(obj) != serialOf(list[0]) {
			return fmt.Errorf("%s is at version %d, %s at %d", nameOf(list[0]), serialOf(list[0]), nameOf(obj), serialOf(obj))
		}
	}
	return nil
}

// G10: an index that is added while others write is there in one step, over what is there at
// that time; a snapshot from before never gets it. Fails if an index shows before it is whole.
func TestAnIndexIsWholeAsSoonAsItIsThere(t *testing.T) {
	w := &pairWriter{store: newTagStore(), others: 40}
	require.NoError(t, w.batch())
	before := w.store.Snapshot()
	var added atomic.Int32
	write := func() error {
		if w.version%10 == 0 && added.Load() < 20 {
			name := "added " + itoa(int(added.Load()+1))
			if err := w.store.AddIndexers(Indexers{name: byTag}); err != nil {
				return err
			}
			added.Add(1)
		}
		return w.batch()
	}
	race(t, 100, write, func() error {
		s := w.store.Snapshot()
		a, _ := s.Get("a/a")
		for name := range w.store.GetIndexers() {
			found, err := s.ByIndex(name, receivedOf(a).ResourceVersion)
			if err == nil && len(found) != w.others+2 {
				return fmt.Errorf("index %q has %d objects of %d", name, len(found), w.others+2)
			}
		}
		return nil
	})
	assert.Positive(t, added.Load())
	_, err := before.ByIndex("added 1", "1")
	require.Error(t, err)
}
