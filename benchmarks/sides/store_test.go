package sides

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/local"
)

// everyStore runs a test with each kind of store, with three indexes.
func everyStore(t *testing.T, objects int, test func(t *testing.T, store Store, key func(i int) string, readOnly bool)) {
	for _, keys := range []Keys{DerivedKeys, KeptKeys} {
		for _, kind := range []struct {
			side Side
			form Form
		}{{ClientGo, SharedInformer}, {Ours, SharedInformer}, {Ours, TypedInformer}, {Floor, SharedInformer}} {
			t.Run(string(kind.side)+" "+string(kind.form)+" "+string(keys), func(t *testing.T) {
				store, err := NewStore(t.Context(), kind.side, kind.form, keys, len(local.Indexes), objects)
				require.NoError(t, err)
				t.Cleanup(store.Close)
				test(t, store, keys.Key, kind.form == TypedInformer)
			})
		}
	}
}

func TestStoresAgreeOnWhatTheyHave(t *testing.T) {
	const objects = 1500
	everyStore(t, objects, func(t *testing.T, store Store, key func(i int) string, readOnly bool) {
		if readOnly {
			require.ErrorIs(t, store.Update(local.NewSmall(0, 9)), errReadOnly)
			require.ErrorIs(t, store.Replace(nil), errReadOnly)
		} else {
			require.NoError(t, store.Update(local.NewSmall(objects+7, 1)))
			require.True(t, store.Get(key(objects+7)))
			var list []any
			for _, object := range local.Smalls(objects) {
				list = append(list, object)
			}
			require.NoError(t, store.Replace(list))
			for round := range 2 { // of stored values, and of others
				moved := local.NewSmall(3, uint64(objects+1+round))
				moved.Labels = map[string]string{"tier": []string{"elsewhere", "tier-0"}[round]}
				require.NoError(t, store.Update(moved))
				n, err := store.ByIndex("tier", "elsewhere")
				require.NoError(t, err)
				require.Equal(t, 1-round, n)
			}
		}
		require.False(t, store.Get(key(objects+7)))
		require.True(t, store.Get(key(objects-1)))
		require.Equal(t, objects, store.List())
		require.Equal(t, objects, store.Iterate())
		require.Equal(t, objects, store.ListKeys())
		for _, index := range local.Indexes {
			n, err := store.ByIndex(index.Name, index.Value(0))
			require.NoError(t, err)
			require.Equal(t, min(objects, index.Each), n, index.Name)
			n, err = store.ByIndex(index.Name, "nobody's")
			require.NoError(t, err)
			require.Zero(t, n)
		}
		_, err := store.ByIndex("no such index", "")
		require.Error(t, err)
	})
}

func TestAStoreThatThereIsNotIsRefused(t *testing.T) {
	for _, indexes := range []int{-1, 4} {
		_, err := NewStore(t.Context(), Ours, SharedInformer, DerivedKeys, indexes, 0)
		require.Error(t, err)
	}
	_, err := NewStore(t.Context(), Ours, "", DerivedKeys, 0, 0)
	require.Error(t, err)
	_, err = NewStore(t.Context(), "nobody", SharedInformer, DerivedKeys, 0, 0)
	require.Error(t, err)
	_, err = keptKeyOf("not an object")
	require.Error(t, err)
}

func TestAQueueReturnsWhatWasPut(t *testing.T) {
	for _, side := range []Side{ClientGo, Ours, Floor} {
		for _, out := range []Out{Singly, InBatches} {
			t.Run(string(side)+" "+string(out), func(t *testing.T) {
				queue, err := NewQueue(side, out)
				require.NoError(t, err)
				for range 3 {
					for _, object := range local.Smalls(20) {
						require.NoError(t, queue.Put(object))
					}
					require.NoError(t, queue.Take(20))
				}
			})
		}
	}
	_, err := NewQueue(Ours, "by pigeon")
	require.Error(t, err)
	empty, err := NewQueue(Floor, Singly)
	require.NoError(t, err)
	require.NoError(t, empty.Put(nil))
	require.Error(t, empty.Take(1))
}
