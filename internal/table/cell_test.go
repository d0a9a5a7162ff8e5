package table

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two keys with the same hash cannot be chosen, so one is stored under another's hash.
func TestKeysOfOneHashAreKeptApart(t *testing.T) {
	for name, changes := range map[string]int{"in place": 2, "staged": many} {
		t.Run(name, func(t *testing.T) {
			table := newTable(0)
			key, twin := KeyOf("ns/name-1"), KeyOf("ns/name-2")
			hash := key.hash(table.seed)
			w := begin(table, changes)
			put := w.put(twin, "twin", nil)
			w.state.keys.remove(twin.hash(table.seed), put.Number, w.epoch)
			w.state.keys.put(hash, put.Number, w.epoch)
			w.put(key, "one", nil)
			w.Commit(nil)
			read := func() []any {
				found, _ := table.GetKey(key)
				require.Equal(t, found, table.Find(key, table.Seek(key)).Object)
				require.Equal(t, found, table.Find(key, Place{hash: hash, number: put.Number}).Object)
				other := table.Find(twin, Place{hash: hash})
				none := table.Find(KeyOf("ns/name-3"), Place{hash: hash})
				require.False(t, none.Exists)
				if e, exists := table.Snapshot().Get(key); exists {
					require.Equal(t, found, e.Object())
				} else {
					require.Nil(t, found)
				}
				return []any{found, other.Object, none.Object}
			}
			require.Equal(t, []any{"one", "twin", nil}, read())
			w = begin(table, changes)
			w.remove(key)
			w.Commit(nil)
			require.Equal(t, []any{nil, "twin", nil}, read())
		})
	}
}
