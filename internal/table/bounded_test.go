package table

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// allocated returns the bytes that f allocates. A copy is allocated before it is used.
func allocated(f func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// worstInPlace returns how much the worst of some writes in place copies while readers wait. They
// include the first writes after a snapshot, which copy every piece that they change.
func worstInPlace(t *testing.T, n int) (worst int, by string) {
	table := filled(pods(n), 3)
	object := &object{1}
	put(table, "roomy", object, nil, nil, nil)
	for i := range 60 {
		key := NewKey(fmt.Sprint("namespace-", i%7), fmt.Sprint("new ", i))
		values := [][]string{{"namespace-1"}, {"tier-0"}, {fmt.Sprint("new ", i)}}
		for _, one := range []struct {
			what  string
			write func(*Table)
		}{
			{"an addition", func(w *Table) { w.put(key, object, values) }},
			{"a change of values", func(w *Table) { w.put(key, object, [][]string{{"x"}, {"tier-0", "y"}, {"z"}}) }},
			{"an update", func(w *Table) { w.put(key, object, [][]string{{"x"}, {"tier-0", "y"}, {"z"}}) }},
			{"a removal", func(w *Table) { w.remove(key) }},
		} {
			if i%2 == 0 {
				table.Snapshot()
			}
			var w *Table
			bytes := allocated(func() {
				w = begin(table, 1)
				one.write(w)
			})
			require.False(t, table.mu.TryLock(), "it is made in place")
			bytes += allocated(func() { w.Commit(nil) })
			if bytes > worst {
				worst, by = bytes, fmt.Sprint(one.what, ", after a snapshot: ", i%2 == 0)
			}
		}
	}
	return worst, by
}

// Readers wait for a write in place, so the amount that it copies must not grow with the table.
func TestAWriteInPlaceCopiesNoMoreTheMoreThereIs(t *testing.T) {
	few, _ := worstInPlace(t, 10_000)
	most, by := worstInPlace(t, 80_000)
	// One more page in a list of pages is 8 bytes for 2,016 objects. In a large directory, a
	// segment that was not split for long has 8 or 16 places, each in another page of half a
	// kilobyte.
	require.Less(t, most, few+24_000, "%s: %d bytes of 10,000 objects, %d of 80,000", by, few, most)
}

// A write in place does not move a slice that has outgrown its memory.
func TestNoWriteInPlaceMovesAllThatHasGrown(t *testing.T) {
	const n = 12_000
	table := newTable(1)
	for i := range n {
		w := begin(table, 1)
		room := cap(w.state.namespaces)
		w.put(NewKey(fmt.Sprint("namespace ", i), "name"), 1, [][]string{{fmt.Sprint("value ", i)}})
		require.Equal(t, room, cap(w.state.namespaces))
		w.Commit(nil)
	}
}

// A write of many changes is staged: it holds no lock before Commit, which only stores a pointer.
func TestAWriteOfManyChangesHoldsNoLockWhileItIsMade(t *testing.T) {
	table := filled(pods(5_000), 3)
	before := table.Snapshot()
	w := begin(table, many)
	free := func() {
		require.True(t, table.mu.TryLock())
		table.mu.Unlock()
		require.Zero(t, table.changes.Load()&1)
		require.Same(t, before, table.Snapshot())
		_, exists := table.Get("new/1")
		require.False(t, exists)
		_, exists = table.Get("namespace-1/pod-00001000")
		require.True(t, exists)
		require.Equal(t, 5_000, table.Len())
	}
	free()
	for i := range 3_000 {
		w.put(KeyOf(fmt.Sprint("new/", i)), i, [][]string{{"new"}, {fmt.Sprint(i)}, nil})
		if i%100 == 0 {
			free()
		}
	}
	free()
	w.AddIndexes(1, func(any) [][]string { return nil })
	free()
	keepOnly(w, func(key Key) bool {
		require.True(t, table.mu.TryLock())
		table.mu.Unlock()
		return key.IsIn("new/") || key.namespace > "namespace-2"
	})
	free()
	// Copying anything that grows with the table would allocate more. The runtime itself may
	// allocate some kB meanwhile.
	require.LessOrEqual(t, allocated(func() { w.Commit(nil) }), 10_000)
	require.Equal(t, 5_000, table.Len())
	require.Equal(t, 5_000, table.Snapshot().Len())
}

func TestASnapshotCostsNoMoreTheMoreThereIs(t *testing.T) {
	table := filled(pods(50_000), 3)
	require.LessOrEqual(t, allocated(func() { table.Snapshot() }), 10_000)
	w := begin(table, many)
	require.LessOrEqual(t, allocated(func() { table.Snapshot() }), 10_000)
	w.Commit(nil)
}

// Fails if a reader sees a change in place half done.
func TestNoLookUpAnswersInTheMiddleOfAWriteInPlace(t *testing.T) {
	table := newTable(0)
	put(table, "a", 1)
	staged := begin(table, many)
	staged.put(KeyOf("a"), 2, nil)
	found, _ := table.Get("a")
	require.Equal(t, 1, found)
	staged.Commit(nil)
	w := begin(table, 2)
	w.put(KeyOf("a"), 3, nil)
	asks := make(chan struct{})
	answered := make(chan any)
	go func() {
		close(asks)
		found, _ := table.Get("a")
		answered <- found
	}()
	<-asks
	select {
	case found := <-answered:
		t.Fatalf("%v in the middle of a write", found)
	case <-time.After(100 * time.Millisecond): // a wrong answer needs no more, even on a busy machine
	}
	w.put(KeyOf("b"), 3, nil)
	w.Commit(nil)
	require.Equal(t, 3, <-answered)
}
