package table

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

func TestSnapshotsOfTenGenerationsStayAsTheyWere(t *testing.T) {
	for _, changes := range []int{1, many} {
		table, m := newTable(2), newModel(2)
		var all []keptSnapshot
		for generation := range 10 {
			for i := range 400 {
				w := begin(table, changes)
				key := fmt.Sprint("ns/", (i*7+generation*13)%300)
				if (i+generation)%3 == 0 {
					w.remove(KeyOf(key))
					m.remove(key)
				} else {
					values := [][]string{{"all"}, {fmt.Sprint(i % 5), fmt.Sprint("g", generation)}}
					w.put(KeyOf(key), generation*1000+i, values)
					m.put(key, generation*1000+i, values)
				}
				w.Commit(nil)
			}
			all = append(all, keptSnapshot{table.Snapshot(), m.clone()})
		}
		w := begin(table, many)
		keepOnly(w, func(Key) bool { return false })
		w.Commit(nil)
		table.pack()
		for _, k := range all {
			k.was.check(t, k.snapshot)
		}
		require.Zero(t, table.Snapshot().Len())
	}
}

func TestASnapshotIsTheSameUntilSomethingIsWritten(t *testing.T) {
	table := newTable(0)
	put(table, "a", 1)
	first := table.Snapshot()
	require.Same(t, first, table.Snapshot())
	table.Get("a")
	require.Same(t, first, table.Snapshot())
	put(table, "a", 2)
	second := table.Snapshot()
	require.NotSame(t, first, second)
	e, _ := first.Get(KeyOf("a"))
	require.Equal(t, 1, e.Object())
	e, _ = second.Get(KeyOf("a"))
	require.Equal(t, 2, e.Object())
}

func TestTheLabelOfASnapshotIsThatOfItsState(t *testing.T) {
	var label string
	table := New(0, func() string { return label })
	w := begin(table, 1)
	w.put(KeyOf("a"), 1, nil)
	w.Commit(func() { label = "1" })
	first := table.Snapshot()
	w = begin(table, many)
	w.put(KeyOf("a"), 2, nil)
	require.Equal(t, "1", table.Snapshot().Version, "what is not committed has no label yet")
	w.Commit(func() { label = "2" })
	second := table.Snapshot()
	begin(table, 0).Commit(func() { label = "3" })
	third := table.Snapshot()
	require.Equal(t, []string{"1", "2", "3"}, []string{first.Version, second.Version, third.Version})
	e, _ := third.Get(KeyOf("a"))
	require.Equal(t, 2, e.Object())
	require.Equal(t, 1, first.Len())
}

func TestReadingASnapshotEndsWhenTheCallerHasEnough(t *testing.T) {
	const n = 3 * chunkLen
	table := newTable(1)
	for i := range n {
		put(table, fmt.Sprint("ns/", i), i, []string{"all", fmt.Sprint(i)})
	}
	s := table.Snapshot()
	all, _ := s.Values(0)
	for _, enough := range []int{1, 2, chunkLen, chunkLen + 1, n - 1, n} {
		met := 0
		more := func() bool { met++; return met < enough }
		for name, read := range map[string]func(){
			"Each":        func() { s.Each(func(Entry) bool { return more() }) },
			"Objects":     func() { ObjectsOf(s, func(any) bool { return more() }) },
			"EachWithKey": func() { s.EachWithKey(func(string, Entry) bool { return more() }) },
			"Having":      func() { s.Having(0, "all", func(Entry) bool { return more() }) },
			"Values":      func() { all(func(string) bool { return more() }) },
		} {
			met = 0
			read()
			require.Equal(t, enough, met, name)
		}
	}
}

func TestAnEmptyTableIsRead(t *testing.T) {
	table := newTable(2)
	_, exists := table.Get("a")
	require.False(t, exists)
	newModel(2).check(t, table.Snapshot())
	w := begin(table, 1)
	require.False(t, w.remove(KeyOf("a")).Exists)
	keepOnly(w, func(Key) bool { panic("there is none") })
	w.Commit(nil)
	begin(table, many).Commit(nil)
	newModel(2).check(t, table.Snapshot())
}

// A snapshot uses memory only for later changes, not for entries that were added after it and
// removed again. Fails if it shares the shortcuts of its state, which change later.
func TestASnapshotKeepsNothingThatCameAfterIt(t *testing.T) {
	type object struct {
		n int
		_ [8]int // otherwise it would share an allocation with others
	}
	table := newTable(0)
	key := KeyOf("ns/a")
	write := func(changes int, obj any) {
		w := begin(table, changes)
		w.put(key, obj, nil)
		w.Commit(nil)
	}
	write(1, &object{n: 1})
	kept := table.Snapshot()
	passing := &object{n: 2}
	removed := weak.Make(passing)
	write(1, passing)
	write(many, &object{n: 3})
	runtime.GC()
	require.Nil(t, removed.Value())
	e, _ := kept.Get(key)
	require.Equal(t, &object{n: 1}, e.Object())
}
