package table

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Some objects have more values than are searched linearly, in another order each time. They share
// values, so each moves others in their postings.
func TestObjectsWithManyValuesAreFoundByThoseThatTheyHaveNow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	pool := numbered(3 * 16)
	table, m := newTable(1), newModel(1)
	var kept []*Snapshot
	var were []*model
	for round := range 400 {
		key := fmt.Sprint("object ", random.IntN(6))
		if random.IntN(8) == 0 {
			remove(table, key)
			m.remove(key)
		} else {
			random.Shuffle(len(pool), func(a, b int) { pool[a], pool[b] = pool[b], pool[a] })
			values := slices.Clone(pool[:random.IntN(len(pool)+1)])
			w := begin(table, []int{1, many}[round%2])
			w.put(KeyOf(key), round, [][]string{values})
			w.Commit(nil)
			m.put(key, round, [][]string{values})
		}
		if round%20 == 0 {
			kept, were = append(kept, table.Snapshot()), append(were, m.clone())
		}
		m.check(t, table.Snapshot())
	}
	for i, s := range kept {
		were[i].check(t, s)
	}
	for i := range 6 {
		remove(table, fmt.Sprint("object ", i))
	}
	newModel(1).check(t, table.Snapshot())
	require.Empty(t, table.references.multiple)
}

func TestTheSameValuesAgainChangeNothingOfAnIndex(t *testing.T) {
	table := newTable(1)
	values := numbered(3)
	put(table, "one", 1, values)
	require.Zero(t, testing.AllocsPerRun(10, func() { put(table, "one", 1, values) }))
	table.Snapshot()
	put(table, "one", 1, values)
	published := table.visible.Load().indexes[0].epoch
	require.NotEqual(t, table.epoch, published, "nothing of the index was copied")
}

func TestTheWeightOfAChangeCountsValuesThatItAddsOrRemoves(t *testing.T) {
	table := newTable(2)
	weight := func(key string, values ...[]string) int {
		return table.Weight(table.Seek(KeyOf(key)), values)
	}
	require.Equal(t, 1, weight("two", nil, nil))
	require.Equal(t, 1, weight("two", []string{"a"}, []string{"b"}))
	require.Equal(t, 1+39+2, weight("two", numbered(40), []string{"a", "b", "c"}))
	put(table, "one", 1, []string{"a"}, []string{"b"})
	require.Equal(t, 1, weight("one"))
	put(table, "two", 1, numbered(40), []string{"a", "b", "c"})
	require.Equal(t, 1+43, weight("two"))
	require.Equal(t, 1, weight("one"))
	require.Equal(t, 1, weight("three"))
	put(table, "two", 1, numbered(40), []string{"b"})
	require.Equal(t, 1+40, weight("two"))
	remove(table, "two")
	require.Equal(t, 1, weight("two"))
}

func TestTheFirstValueOfACellMakesNoRoomForAllBeforeIt(t *testing.T) {
	const n = 100_000
	table := newTable(1)
	w := begin(table, n)
	for i := range n {
		w.put(KeyOf(fmt.Sprint(i)), 1, [][]string{nil})
	}
	w.Commit(nil)
	w = begin(table, 1)
	require.Less(t, allocated(func() { w.put(KeyOf("last"), 1, [][]string{{"value"}}) }), 60_000)
	w.Commit(nil)
	require.Equal(t, []string{"last"}, having(table.Snapshot(), 0, "value"))
	for i := range n / 1_000 {
		put(table, fmt.Sprint(1_000*i), 1, []string{"value"})
	}
	require.Equal(t, n/1_000+1, table.Snapshot().HavingLen(0, "value"))
}

func TestAValueDoesNotKeepTheObjectThatItIsPartOf(t *testing.T) {
	table := newTable(1)
	before := heap()
	for i := range 20 {
		whole := strings.Repeat(fmt.Sprint("part ", i, " "), 100_000)
		put(table, fmt.Sprint(i), 1, []string{whole[:8], whole[8:16]}[:1+i%2])
	}
	require.Less(t, heap()-before, 1_000_000)
	runtime.KeepAlive(table)
}
