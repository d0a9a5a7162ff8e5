package table

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// collected returns the objects with which ObjectsOf calls. AppendObjectsOf must return the same,
// and so must ObjectsOfHaving for a value that all objects have.
func collected[T any](t *testing.T, s *Snapshot) (all []T) {
	ObjectsOf(s, func(obj T) bool {
		all = append(all, obj)
		return true
	})
	require.Equal(t, all, AppendObjectsOf[T](nil, s))
	require.ElementsMatch(t, all, ObjectsOfHaving[T](s, 0, "all"))
	require.Equal(t, []T{}, ObjectsOfHaving[T](s, 0, "none"))
	return all
}

// Fails if an object of another type is returned, in a chunk with one type or several, or if one of
// the type is omitted: a pointer, a value, or an implementation of an interface.
func TestObjectsOfATypeAreFoundAmongOthers(t *testing.T) {
	for name, others := range map[string]int{"of one type": 0, "of two": 1, "each second of another": 150} {
		t.Run(name, func(t *testing.T) {
			const pointers = 150 // several chunks
			table := newTable(1)
			want, n := map[*value]bool{}, 0
			for i := range pointers {
				obj := &value{"v", fmt.Sprint(i)}
				want[obj] = true
				put(table, fmt.Sprint("a", i), obj, []string{"all"})
				if i < others {
					put(table, fmt.Sprint("b", i), number(i), []string{"all"})
					n++
				}
			}
			s := table.Snapshot()
			found := map[*value]bool{}
			for _, obj := range collected[*value](t, s) {
				found[obj] = true
			}
			require.Equal(t, want, found)
			require.Len(t, collected[number](t, s), n)
			require.Len(t, collected[fmt.Stringer](t, s), n)
			require.Len(t, collected[any](t, s), pointers+n)
			require.Empty(t, collected[*number](t, s))
			require.Empty(t, collected[value](t, s))
			calls := 0
			ObjectsOf(s, func(*value) bool { calls++; return calls < 70 })
			require.Equal(t, 70, calls)
		})
	}
}

// HasOnly may return false where true would be correct, but never the reverse.
func TestATableHasOnlyWhatItNeverHadAnythingBeside(t *testing.T) {
	for _, row := range []struct {
		objects  []any
		pointers bool
		values   bool
	}{
		{nil, true, true},
		{[]any{&value{"a", "b"}}, true, false},
		{[]any{value{"a", "b"}}, false, true},
		{[]any{&value{"a", "b"}, value{"a", "b"}}, false, false},
		{[]any{&value{"a", "b"}, map[string]int(nil)}, false, false},
	} {
		table := New(0, func() string { return "" })
		for i, obj := range row.objects {
			w := begin(table, 1)
			w.put(NewKey("a", string(rune('a'+i))), obj, nil)
			w.Commit(nil)
		}
		s := table.Snapshot()
		require.Equal(t, row.pointers, HasOnly[*value](s))
		require.Equal(t, row.values, HasOnly[value](s))
		require.True(t, HasOnly[any](s))
		require.False(t, HasOnly[interface{ String() string }](s))
	}
}
