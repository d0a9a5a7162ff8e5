package table

import (
	"fmt"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// heap returns the bytes of live memory.
func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // for memory that was swept late
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

func TestPackingKeepsEverythingAndGivesMemoryBack(t *testing.T) {
	const n, stay = 40_000, 100
	before := heap()
	table, m := newTable(3), newModel(3)
	w := begin(table, n)
	for i := range n {
		key := fmt.Sprintf("ns-%d/%d", i%50, i)
		values := [][]string{
			{fmt.Sprint(i % 50)},
			{fmt.Sprint("own ", i)},
			[]string{"even", fmt.Sprint(i / 2)}[i%2:],
		}
		w.put(KeyOf(key), &object{i}, values)
		if i%(n/stay) == 0 {
			found := w.find(KeyOf(key))
			m.put(key, found.Object, values)
		}
	}
	w.Commit(nil)
	full := heap() - before
	require.Greater(t, full, n*100, "objects, keys and values")
	kept := table.Snapshot()
	require.Equal(t, n, table.made())
	w = begin(table, many)
	keepOnly(w, func(key Key) bool { return m.objects[key.String()] != nil })
	w.Commit(nil)
	require.Equal(t, stay, table.made())
	m.check(t, table.Snapshot())
	require.Equal(t, n, kept.Len())
	left := heap() - before
	require.Less(t, left, full/20)
	// It works like any other table.
	put(table, "new", 1, []string{"1"}, nil, []string{"2", "3"})
	m.put("new", 1, [][]string{{"1"}, nil, {"2", "3"}})
	m.check(t, table.Snapshot())
	runtime.KeepAlive(table)
}

func TestATableIsPackedOnlyIfMostOfItIsRemoved(t *testing.T) {
	const n = 3 * minFree
	table := newTable(1)
	w := begin(table, n)
	for i := range n {
		w.put(KeyOf(fmt.Sprint(i)), i, [][]string{{"all"}})
	}
	w.Commit(nil)
	packed := 0
	for i := range n {
		cells := table.made()
		if remove(table, fmt.Sprint(i)); table.made() != cells {
			packed++
			require.LessOrEqual(t, table.Len(), cells/2)
		}
	}
	require.Equal(t, 2, packed, "what is small is left as it is")
	require.LessOrEqual(t, table.made(), minFree)
}

func TestAHundredThousandNamespacesComeAndGoWithoutATrace(t *testing.T) {
	table := newTable(0)
	put(table, "stays/a", 1)
	before := heap()
	var kept []*Snapshot
	for i := range 100_000 {
		key := fmt.Sprintf("namespace-%d/a", i)
		put(table, key, i)
		if i%30_000 == 0 {
			kept = append(kept, table.Snapshot())
		}
		remove(table, key)
	}
	require.LessOrEqual(t, len(table.namespaces), 2*minFree)
	require.LessOrEqual(t, len(table.visible.Load().namespaces), 2*minFree)
	for i, s := range kept {
		require.Equal(t, 2, s.Len())
		e, exists := s.Get(KeyOf(fmt.Sprintf("namespace-%d/a", i*30_000)))
		require.True(t, exists)
		require.Equal(t, i*30_000, e.Object())
	}
	require.Less(t, heap()-before, 1<<20)
	found, exists := table.Get("stays/a")
	require.True(t, exists)
	require.Equal(t, 1, found)
}

func TestAHundredThousandValuesOfManyObjectsGiveTheirMemoryBack(t *testing.T) {
	const n = 100_000
	table := newTable(1)
	fill := func(valuesOf func(i int) []string) {
		w := begin(table, n)
		for i := range n {
			w.put(KeyOf(fmt.Sprint(i)), "x", [][]string{valuesOf(i)})
		}
		w.Commit(nil)
	}
	fill(func(int) []string { return []string{"all"} })
	before := heap()
	fill(func(i int) []string { return []string{fmt.Sprint("value ", i), fmt.Sprint("value ", n+i)} })
	require.Greater(t, heap()-before, 100*n)
	fill(func(int) []string { return []string{"all"} })
	require.Less(t, heap()-before, 5*n)
	require.Equal(t, n, table.Snapshot().HavingLen(0, "all"))
	runtime.KeepAlive(table)
}

func TestManyValuesOfEachObjectGiveTheirMemoryBack(t *testing.T) {
	const n = 20_000
	table := newTable(1)
	fill := func(values ...string) {
		w := begin(table, n)
		for i := range n {
			w.put(KeyOf(fmt.Sprint(i)), "x", [][]string{values})
		}
		w.Commit(nil)
	}
	fill("a")
	before := heap()
	fill("a", "b", "c")
	full := heap() - before
	require.Greater(t, full, 50*n)
	fill("a")
	require.Less(t, heap()-before, full/4)
	runtime.KeepAlive(table)
}

// A snapshot uses memory only for later changes.
func TestAKeptSnapshotCostsWhatHasChangedSince(t *testing.T) {
	const n = 50_000
	table := newTable(1)
	w := begin(table, n)
	for i := range n {
		w.put(KeyOf(fmt.Sprint(i)), "x", [][]string{{fmt.Sprint(i % 100)}})
	}
	w.Commit(nil)
	before := heap()
	first := table.Snapshot()
	for i := range 10 {
		put(table, fmt.Sprint(i), "x", []string{"0"})
	}
	require.Less(t, heap()-before, 100<<10)
	require.Equal(t, n/100, first.HavingLen(0, "0"))
	runtime.KeepAlive(table)
	runtime.KeepAlive(first)
}

// Few additions and removals do not rebuild a large table.
func TestPackingCostsEachRemovalAConstant(t *testing.T) {
	const n, rounds, some = 20_000, 3, minFree + 100
	for name, churn := range map[string]struct {
		in  func(w *Table, i int)
		out func(w *Table, i int)
	}{
		"values": {
			in:  func(w *Table, i int) { w.put(KeyOf("one"), i, [][]string{numbered(some)}) },
			out: func(w *Table, i int) { w.put(KeyOf("one"), i, [][]string{{"all"}}) },
		},
		"namespaces": {
			in: func(w *Table, i int) {
				for _, text := range numbered(some) {
					w.put(NewKey(fmt.Sprint(text, " of round ", i), "a"), i, [][]string{nil})
				}
			},
			out: func(w *Table, _ int) {
				keepOnly(w, func(key Key) bool { return key.namespace == "" })
			},
		},
	} {
		table := newTable(1)
		w := begin(table, n)
		for i := range n {
			w.put(KeyOf(fmt.Sprint(i)), i, [][]string{{"all"}})
		}
		w.Commit(nil)
		moved := 0
		for i := range rounds {
			for _, change := range []func(*Table, int){churn.in, churn.out} {
				before := reflect.ValueOf(table.namespaces).Pointer()
				w := begin(table, many)
				change(w, i)
				w.Commit(nil)
				if reflect.ValueOf(table.namespaces).Pointer() != before { // it was packed
					moved += table.Len()
				}
			}
		}
		require.LessOrEqual(t, moved, 10*rounds*some, "%s: %d were added and removed", name, rounds*some)
	}
}

func numbered(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprint("number ", i)
	}
	return texts
}
