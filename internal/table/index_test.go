package table

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// having returns the keys of the objects with a value.
func having(s *Snapshot, index int, value string) []string {
	var keys []string
	s.Having(index, value, func(e Entry) bool {
		keys = append(keys, e.Key().String())
		return true
	})
	return sorted(keys)
}

func TestAnObjectIsFoundByEachOfItsValuesAndNoLongerByThoseItHad(t *testing.T) {
	for _, changes := range []int{1, many} {
		table, m := newTable(1), newModel(1)
		sets := [][]string{
			nil,
			{"a"},
			{"a", "b"},
			{"b"},
			{"c", "a", "b"},
			{""},
			{"", "a"},
			{"d", "e", "f", "g"},
			nil,
			{"g"},
			{"x", "y"},
			{"y", "x"},
		}
		others := [][]string{{"a", "b", "c"}, {"a"}, {"g", "x"}, {"", "y"}}
		for i, values := range others {
			key := fmt.Sprint("other-", i)
			put(table, key, i, values)
			m.put(key, i, [][]string{values})
		}
		for round := range 3 {
			for i, values := range sets {
				w := begin(table, changes)
				w.put(KeyOf("one"), i, [][]string{values})
				// Another object is removed and added, so that later ones move.
				key := fmt.Sprint("other-", (i+round)%len(others))
				w.remove(KeyOf(key))
				w.put(KeyOf(key), i, [][]string{others[(i+round)%len(others)]})
				w.Commit(nil)
				m.put("one", i, [][]string{values})
				m.put(key, i, [][]string{others[(i+round)%len(others)]})
				m.check(t, table.Snapshot())
			}
		}
		for i := range others {
			remove(table, fmt.Sprint("other-", i))
		}
		remove(table, "one")
		newModel(1).check(t, table.Snapshot())
		require.Empty(t, table.references.multiple)
	}
}

func TestAValueThatAllHaveCanBeRemovedFromAnyOfThem(t *testing.T) {
	const n = 3 * blockLen
	for _, step := range []int{1, 7, n - 1} {
		table, m := newTable(1), newModel(1)
		for i := range n {
			key := fmt.Sprint(i)
			put(table, key, i, []string{"all", "all of them"})
			m.put(key, i, [][]string{{"all", "all of them"}})
		}
		for i := range n {
			key := fmt.Sprint(i * step % n)
			put(table, key, -i, []string{"all of them"})
			m.put(key, -i, [][]string{{"all of them"}})
			if i%100 == 0 {
				m.check(t, table.Snapshot())
			}
		}
		m.check(t, table.Snapshot())
	}
}

func TestAHundredThousandValuesOfOneObjectComeAndGoWithoutATrace(t *testing.T) {
	table := newTable(2)
	for i := range 100_000 {
		text := fmt.Sprint(i)
		put(table, "one", i, []string{text}, []string{"same", text, text + "'"})
		if i%10_000 == 0 {
			s := table.Snapshot()
			require.Equal(t, []string{"one"}, having(s, 0, text))
			require.Equal(t, []string{"one"}, having(s, 1, text+"'"))
			require.Zero(t, s.HavingLen(1, fmt.Sprint(i-1)))
		}
	}
	for _, i := range table.visible.Load().indexes {
		require.LessOrEqual(t, i.allocated, uint32(6), "records are used again")
		require.LessOrEqual(t, i.values.mask, uint32(pageLen-1), "and places of the directory")
		require.Len(t, i.records.pages, 1)
	}
}

func TestIndexesAreAddedToAFilledTable(t *testing.T) {
	table, m := newTable(1), newModel(1)
	for i := range 500 {
		key := fmt.Sprintf("ns-%d/%d", i%3, i)
		values := [][]string{{fmt.Sprint(i % 10)}}
		put(table, key, i, values...)
		m.put(key, i, values)
	}
	before, was := table.Snapshot(), m.clone()
	w := begin(table, many)
	w.AddIndexes(2, func(any) [][]string { return nil })
	m.addIndexes(2)
	met := 0
	w.each(func(number uint32, key Key, obj any) {
		met++
		i := obj.(int)
		third := []string{"x", fmt.Sprint(i)}[:i%3]
		w.Index(1, number, []string{key.namespace})
		w.Index(2, number, third)
		m.values[1][key.String()], m.values[2][key.String()] = []string{key.namespace}, third
	})
	require.Equal(t, 500, met)
	require.Same(t, before, table.Snapshot(), "readers see the table without them until the commit")
	w.Commit(nil)
	m.check(t, table.Snapshot())
	put(table, "ns-1/1", 7, nil, []string{"moved"}, []string{"x", "y"})
	m.put("ns-1/1", 7, [][]string{nil, {"moved"}, {"x", "y"}})
	m.check(t, table.Snapshot())
	was.check(t, before)
	require.Len(t, before.state.indexes, 1)
}

func TestTheValuesThatAreHandedInAreNotKept(t *testing.T) {
	table := newTable(1)
	values := []string{"a", "b"}
	put(table, "one", 1, values)
	values[0], values[1] = "x", "y"
	s := table.Snapshot()
	all, _ := s.Values(0)
	require.Equal(t, []string{"a", "b"}, sorted(slices.Collect(all)))
	remove(table, "one")
	require.Zero(t, table.Snapshot().HavingLen(0, "a"))
}
