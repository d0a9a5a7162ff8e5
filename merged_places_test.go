package cache

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// Fails if of two keys with one hash the changes of one are merged with those of the other, or
// if one's end is taken for the other's.
func TestKeysWithOneHashAreMergedEachForItself(t *testing.T) {
	one, other := table.KeyOf("x"), table.KeyOf("/x")
	require.Equal(t, hashOfKey(one), hashOfKey(other), "else this test is of nothing")
	for _, keys := range [][2]table.Key{{one, other}, {other, one}} {
		b := backlog{delivery: Coalesced}
		add := func(key table.Key, kind notificationKind, old, obj any) {
			b.add(notification{kind: kind, key: key, old: old, obj: obj}, 2)
		}
		add(keys[0], tellAdd, nil, 1)
		add(keys[1], tellAdd, nil, 2)
		add(keys[0], tellUpdate, 1, 3)
		add(keys[1], tellUpdate, 2, 4)
		require.Equal(t, 2, b.len())
		n, ok := b.take()
		require.True(t, ok)
		require.Equal(t, []any{keys[0], 3}, []any{n.key, n.obj})
		add(keys[0], tellUpdate, 3, 5)
		add(keys[1], tellUpdate, 4, 6)
		add(keys[0], tellUpdate, 5, 7)
		require.Equal(t, 2, b.len())
		add(keys[1], tellDelete, 6, nil)
		require.Equal(t, 1, b.len(), "what came and went is nothing")
		n, ok = b.take()
		require.True(t, ok)
		require.Equal(t, []any{keys[0], 3, 7}, []any{n.key, n.old, n.obj})
		require.False(t, b.hasNext())
		require.Zero(t, b.places.len())
	}
}
