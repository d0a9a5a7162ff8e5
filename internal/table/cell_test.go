package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Nobody can choose two keys of one hash, so that one is put with another's.
func TestKeysOfOneHashAreToldApart(t *testing.T) {
	for name, inPlace := range map[string]int{"in place": 2, "aside": many} {
		t.Run(name, func(t *testing.T) {
			table := newTable(0)
			key, other := KeyOf("ns/name-1"), KeyOf("ns/name-2")
			hash := key.hash(table.seed)
			w := table.Begin(inPlace)
			w.put(other, hash, "other", 1, nil)
			w.put(key, hash, "one", 2, nil)
			w.Commit(nil)
			get := func(key Key) any {
				found, exists, whole := table.tryGet(key, hash, table.changes.Load())
				require.True(t, whole)
				require.Equal(t, exists, found.Object != nil)
				return found.Object
			}
			read := func() []any {
				found, _ := table.Get(key)
				same, _ := table.GetText(key.String())
				require.Equal(t, found, same)
				all := []any{found.Object, get(other), get(KeyOf("ns/name-3"))}
				if e, exists := table.Snapshot().Get(key); exists {
					require.Equal(t, found.Object, e.Object())
				} else {
					require.Nil(t, found.Object)
				}
				return all
			}
			require.Equal(t, []any{"one", "other", nil}, read())
			w = table.Begin(inPlace)
			w.put(other, hash, "another", 3, nil)
			w.Commit(nil)
			require.Equal(t, []any{"one", "another", nil}, read())
			w = table.Begin(inPlace)
			number, _, _ := w.find(other, hash)
			w.PutAt(number, other, "a third", 4, nil)
			w.Commit(nil)
			require.Equal(t, []any{"one", "a third", nil}, read())
			w = table.Begin(inPlace)
			w.Remove(key)
			w.Commit(nil)
			require.Equal(t, []any{nil, "a third", nil}, read())
		})
	}
}

// There are some 4 million numbers for spaces.
func TestKeysWhoseSpaceHasNoNumberAreKeysAsOthers(t *testing.T) {
	table := newTable(1)
	table.mostSpaces = 3
	m := newModel(1)
	for i := range 6 {
		for _, key := range []string{fmt.Sprintf("ns-%d/a", i), fmt.Sprintf("ns-%d/", i), fmt.Sprint("b", i)} {
			put(table, key, key, []string{"v"})
			m.put(key, key, 0, [][]string{{"v"}})
		}
	}
	m.check(t, table.Snapshot())
	for i := 1; i < 6; i += 2 {
		key := fmt.Sprintf("ns-%d/a", i)
		w := table.Begin(1)
		w.Remove(KeyOf(key))
		w.Commit(nil)
		m.remove(key)
		put(table, fmt.Sprintf("ns-%d/", i), "again", []string{"w"})
		m.put(fmt.Sprintf("ns-%d/", i), "again", 0, [][]string{{"w"}})
	}
	m.check(t, table.Snapshot())
	for key, obj := range m.objects {
		found, exists := table.GetText(key)
		require.True(t, exists)
		require.Equal(t, obj, found.Object)
	}
	_, exists := table.GetText("ns-5/a")
	require.False(t, exists)
}

// checkShortcuts says that they lead where the long way does.
func checkShortcuts(t *testing.T, table *Table) {
	t.Helper()
	s := table.state.Load()
	for number := uint32(0); number < s.cells; number += chunkLen {
		long := s.pages[number/perPage].Load().chunks[number/chunkLen%pageLen].Load()
		require.Same(t, long, s.chunk(number))
	}
	const some = 1 << 10
	for i := range uint64(some) {
		hash := i * (1 << 54)
		require.Same(t, s.keys.segment(hash), s.segment(hash))
	}
}

func TestShortcutsLeadWhereTheLongWayDoes(t *testing.T) {
	for name, changes := range map[string]int{"in place": 1, "aside": many, "by turns": 0} {
		t.Run(name, func(t *testing.T) {
			table := newTable(0)
			for i := range 20_000 {
				n := changes
				if n == 0 {
					n = 1 + i%2*many
				}
				w := table.Begin(n)
				w.Put(KeyOf(fmt.Sprint("ns/", i)), i, 0, nil)
				w.Commit(nil)
				if i%97 == 0 {
					table.Snapshot()
				}
				if i%1999 == 0 {
					checkShortcuts(t, table)
				}
			}
			checkShortcuts(t, table)
			s := table.state.Load()
			without := 0
			for i := range s.short.segments {
				if s.short.segments[i].Load() == nil {
					without++
				}
			}
			require.Less(t, without, len(s.short.segments)/8, "nearly all segments have one")
		})
	}
}
