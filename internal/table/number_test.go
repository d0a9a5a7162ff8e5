package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPutAndFindSayTheNumberOfTheCell(t *testing.T) {
	table := newTable(0)
	w := table.Begin(3)
	numbers := map[uint32]string{}
	for i := range 3 {
		key := fmt.Sprint("ns/", i)
		put, _ := w.Put(KeyOf(key), i, 0, nil)
		again, _ := w.Put(KeyOf(key), i, 0, nil)
		found, _ := w.Find(KeyOf(key))
		require.Equal(t, put.Number, again.Number)
		require.Equal(t, put.Number, found.Number)
		numbers[found.Number] = key
	}
	require.Len(t, numbers, 3)
	w.Commit(nil)
	w = table.Begin(many)
	w.Each(func(number uint32, key Key, found Found) {
		require.Equal(t, numbers[number], key.String())
		require.Equal(t, number, found.Number)
	})
	w.Commit(nil)
}

// Whoever has a number from a Get, with the count from before, finds by the count whether
// it may be that of another cell by now: however the cells were changed meanwhile.
func TestANumberIsThatOfItsCellUntilRenumberedSaysOtherwise(t *testing.T) {
	// replace puts another object where the first one was.
	replace := func(w *Write) {
		w.Remove(KeyOf("a"))
		w.Put(KeyOf("b"), 2, 0, nil)
	}
	for name, change := range map[string]func(table *Table, read func()){
		"in place": func(table *Table, read func()) {
			read()
			w := table.Begin(2)
			replace(w)
			w.Commit(nil)
		},
		"aside, read before": func(table *Table, read func()) {
			read()
			w := table.Begin(many)
			replace(w)
			w.Commit(nil)
		},
		"aside, read meanwhile": func(table *Table, read func()) {
			w := table.Begin(many)
			replace(w)
			read()
			w.Commit(nil)
		},
	} {
		table := newTable(0)
		put(table, "a", 1)
		var count uint64
		var found Found
		change(table, func() {
			count = table.Renumbered()
			found, _ = table.Get(KeyOf("a"))
		})
		other, exists := table.Get(KeyOf("b"))
		require.True(t, exists)
		require.Equal(t, found.Number, other.Number)
		require.NotEqual(t, count, table.Renumbered(), name)
	}
}
