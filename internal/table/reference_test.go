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

// Some of the objects have more values than are looked at one by one, in an order that is
// another one each time, and share them, so that each moves the others in their postings.
func TestObjectsWithManyValuesAreFoundByThoseThatTheyHaveNow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	pool := numbered(3 * lookAtEach)
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
			w := table.Begin([]int{1, many}[round%2])
			w.Put(KeyOf(key), round, 0, [][]string{values})
			w.Commit(nil)
			m.put(key, round, 0, [][]string{values})
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
	require.Empty(t, table.references[0].several)
}

// Values that stay keep their references, whatever comes and goes around them.
func TestValuesThatStayAreNotTakenOutAndPutBack(t *testing.T) {
	table := newTable(1)
	values := numbered(3 * lookAtEach)
	put(table, "one", 1, values)
	before := slices.Clone(table.references[0].all(0))
	require.Zero(t, testing.AllocsPerRun(10, func() { put(table, "one", 1, values) }), "the same again")
	table.Snapshot()
	slices.Reverse(values)
	put(table, "one", 1, values)
	slices.Reverse(before)
	require.Equal(t, before, table.references[0].all(0))
	index := table.state.Load().indexes[0]
	require.NotEqual(t, table.epoch, index.owner, "nothing of the index was copied")
}

func TestTheWriterKnowsBeforeItBeginsHowManyValuesAWriteWouldTakeOut(t *testing.T) {
	table := newTable(2)
	several := func(key string) int { return table.SeveralUnder(KeyOf(key)) }
	require.Zero(t, several("two"))
	put(table, "one", 1, []string{"a"}, []string{"b"})
	require.Zero(t, several("one"))
	put(table, "two", 1, numbered(40), []string{"a", "b", "c"})
	require.Equal(t, 43, several("two"))
	require.Zero(t, several("one"))
	require.Zero(t, several("three"))
	put(table, "two", 1, numbered(40), []string{"b"})
	require.Equal(t, 40, several("two"))
	remove(table, "two")
	require.Zero(t, several("two"))
}

// BenchmarkValues is the values of one object, per value. For 16 times as many it is to be less
// than 5 times as much, most of which is that they do not fit into a cache any more; it was 16
// times as much where each value was compared with each.
func BenchmarkValues(b *testing.B) {
	for name, begin := range map[string]func(m int) (prepare, f func()){
		"the same again": func(m int) (prepare, f func()) {
			table, values := newTable(1), numbered(m)
			put(table, "one", 1, values)
			return func() {}, func() { put(table, "one", 1, values) }
		},
		"in another order": func(m int) (prepare, f func()) {
			table, values := newTable(1), numbered(m)
			put(table, "one", 1, values)
			return func() { slices.Reverse(values) }, func() { put(table, "one", 1, values) }
		},
		"others": func(m int) (prepare, f func()) {
			table, sets, i := newTable(1), [][]string{numbered(m), numbered(2 * m)[m:]}, 0
			return func() { i++ }, func() { put(table, "one", 1, sets[i%2]) }
		},
		// Each is taken out from before another one's, which moves.
		"taken out": func(m int) (prepare, f func()) {
			table, values := newTable(1), numbered(m)
			return func() {
				remove(table, "other")
				put(table, "one", 1, values)
				put(table, "other", 1, values)
			}, func() { remove(table, "one") }
		},
	} {
		for _, m := range []int{1_000, 16_000} {
			b.Run(fmt.Sprint(name, "/", m), func(b *testing.B) {
				prepare, f := begin(m)
				for b.Loop() {
					b.StopTimer()
					prepare()
					b.StartTimer()
					f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(m), "ns/value")
			})
		}
	}
}

func TestTheFirstValueOfACellMakesNoRoomForAllBeforeIt(t *testing.T) {
	const n = 100_000
	table := newTable(1)
	w := table.Begin(n)
	for i := range n {
		w.Put(KeyOf(fmt.Sprint(i)), nil, 0, [][]string{nil})
	}
	w.Commit(nil)
	w = table.Begin(1)
	require.Less(t, allocated(func() { w.Put(KeyOf("last"), nil, 0, [][]string{{"value"}}) }), 10_000)
	w.Commit(nil)
	require.Equal(t, []string{"last"}, having(table.Snapshot(), 0, "value"))
	for i := range n / 1_000 {
		put(table, fmt.Sprint(1_000*i), nil, []string{"value"})
	}
	require.Equal(t, n/1_000+1, table.Snapshot().HavingLen(0, "value"))
}

func TestAValueDoesNotKeepTheObjectThatItIsPartOf(t *testing.T) {
	table := newTable(1)
	before := heap()
	for i := range 20 {
		whole := strings.Repeat(fmt.Sprint("part ", i, " "), 100_000)
		put(table, fmt.Sprint(i), nil, []string{whole[:8], whole[8:16]}[:1+i%2])
	}
	require.Less(t, heap()-before, 1_000_000)
	runtime.KeepAlive(table)
}

// partsOf are texts each of which is part of something larger, as those of objects are.
func partsOf(texts []string) []string {
	parts := make([]string, len(texts))
	for i, text := range texts {
		parts[i] = (text + strings.Repeat(" ", 300))[:len(text)]
	}
	return parts
}

// BenchmarkReindex is an update that changes no value.
func BenchmarkReindex(b *testing.B) {
	const n = 400_000
	for name, same := range map[string]func(i int) []string{
		"few":   func(i int) []string { return []string{fmt.Sprintf("namespace-%d", i/1_000)} },
		"own":   func(i int) []string { return []string{fmt.Sprintf("owner-%d", i/2)} },
		"three": func(i int) []string { return []string{fmt.Sprint("a", i%100), fmt.Sprint("b", i/100), "c"} },
	} {
		b.Run(name, func(b *testing.B) {
			t, values := newTable(1), make([][]string, n)
			w := t.Begin(n)
			for i := range n {
				values[i] = same(i)
				w.Put(KeyOf(fmt.Sprint(i)), nil, 0, [][]string{partsOf(same(i))})
			}
			w.Commit(nil)
			w = t.Begin(many)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				at := uint32(i) * 7919 % n
				w.reindex(0, at, values[at])
			}
			w.Commit(nil)
		})
	}
}
