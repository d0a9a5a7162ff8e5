package table

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// listed returns the texts of all keys, by each way to list them.
func listed(t *testing.T, s *Snapshot) []string {
	var each, entries []string
	s.EachWithKey(func(text string, e Entry) bool {
		each, entries = append(each, text), append(entries, e.Key().String())
		return true
	})
	require.Equal(t, each, entries)
	require.Equal(t, each, keysIn(s))
	return sorted(each)
}

func TestKeysAreListedAsTheirTexts(t *testing.T) {
	table := newTable(0)
	for i, key := range oddKeys() {
		put(table, key, i)
	}
	require.Equal(t, sorted(oddKeys()), listed(t, table.Snapshot()))
}

// The cell has only a pointer into the caller's text.
func TestATextStaysForAsLongAsItIsListed(t *testing.T) {
	const some = 1_000
	table := newTable(0)
	var want []string
	for i := range some {
		put(table, fmt.Sprintf("namespace-of-%d/name-of-%d", i, i), i)
		want = append(want, fmt.Sprintf("namespace-of-%d/name-of-%d", i, i))
	}
	var others [][]byte
	for range 3 {
		runtime.GC()
		for range 10 * some {
			others = append(others, []byte(strings.Repeat("x", 31)))
		}
	}
	require.NotEmpty(t, others)
	require.Equal(t, sorted(want), listed(t, table.Snapshot()))
}

// The texts of a chunk are allocated together. A key without a slash is its own text.
func TestListingKeysAllocatesOnceForSixtyKeys(t *testing.T) {
	const some = 1_000
	for space, want := range map[string]int{"namespace/": (some + chunkLen) / chunkLen, "": 0} {
		table := newTable(0)
		for i := range some {
			put(table, fmt.Sprint(space, "name-", i), i)
		}
		s := table.Snapshot()
		require.Equal(t, want+1, int(testing.AllocsPerRun(10, func() { keysIn(s) })), "with the list")
	}
}
