package table

import (
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oddKeys returns different keys that a structure with two parts might confuse.
func oddKeys() []string {
	long, tooLong := strings.Repeat("n", 200), strings.Repeat("m", 70_000)
	return []string{
		"", "/", "//", "a", "/a", "a/", "a/a", "aa", "a//", "//a", "/a/", "a/b/c", "a/b", "b/a", "ab", "a/bc", "ab/c",
		long, long + "/", "/" + long, long + "/" + long, "a/" + long,
		tooLong, tooLong + "/", "/" + tooLong, "a/" + tooLong, "b/" + tooLong, tooLong + "x",
		"ns/\x00", "\x00/ns", "\x00", "ns/é", "\xff",
	}
}

func TestAKeyIsItsText(t *testing.T) {
	seed := maphash.MakeSeed()
	all := oddKeys()
	for i, text := range all {
		key := KeyOf(text)
		require.Equal(t, text, key.String())
		for j, other := range all {
			require.Equal(t, i == j, key.Is(other), "%.20q is %.20q", text, other)
			require.Equal(t, i == j, key == KeyOf(other))
			require.Equal(t, i == j, key.hash(seed) == KeyOf(other).hash(seed), "%.20q and %.20q", text, other)
		}
	}
}

func TestNewKeyIsTheKeyWithThatText(t *testing.T) {
	parts := []string{"", "a", "a/b", "/", "/a", "a/", "a/b/c", strings.Repeat("n", 70_000)}
	for _, namespace := range parts {
		for _, name := range parts {
			text := namespace + "/" + name
			if namespace == "" {
				text = name
			}
			require.Equal(t, KeyOf(text), NewKey(namespace, name), "%.20q, %.20q", namespace, name)
		}
	}
}

func TestAKeyIsInItsNamespaceAlone(t *testing.T) {
	for _, in := range []string{"a/b", "a/", "a/b/c"} {
		require.True(t, KeyOf(in).IsIn("a/"), in)
	}
	for _, out := range []string{"a", "", "/a", "ab/c", "b/a", "/", "aa/a"} {
		require.False(t, KeyOf(out).IsIn("a/"), out)
	}
	require.False(t, KeyOf("a").IsIn("/"))
}

func TestOddKeysAreKeptApart(t *testing.T) {
	for _, changes := range []int{1, many} {
		table, m := newTable(0), newModel(0)
		for i, text := range oddKeys() {
			w := begin(table, changes)
			existed := w.put(KeyOf(text), i, nil).Exists
			w.Commit(nil)
			require.False(t, existed)
			m.put(text, i, nil)
		}
		m.check(t, table.Snapshot())
		for i, text := range oddKeys() {
			found, exists := table.Get(text)
			require.True(t, exists)
			require.Equal(t, i, found)
			if i%2 == 0 {
				remove(table, text)
				m.remove(text)
			}
		}
		m.check(t, table.Snapshot())
	}
}
