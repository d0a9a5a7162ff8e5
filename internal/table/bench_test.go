package table

import (
	"fmt"
	"runtime"
	"testing"
)

type pod struct{ namespace, name, owner string }

func pods(n int) []*pod {
	all := make([]*pod, n)
	for i := range all {
		all[i] = &pod{
			namespace: fmt.Sprintf("namespace-%d", i/1000),
			name:      fmt.Sprintf("pod-%08d", i),
			owner:     fmt.Sprintf("owner-%d", i/10),
		}
	}
	return all
}

// filled returns a table with up to three indexes: namespaces with a thousand objects, tiers with
// ten thousand, owners with ten.
func filled(all []*pod, indexes int) *Table {
	t := newTable(indexes)
	tiers := make([]string, len(all)/10000+1)
	for i := range tiers {
		tiers[i] = fmt.Sprintf("tier-%d", i)
	}
	w := begin(t, max(len(all), many))
	for i, p := range all {
		values := [][]string{{p.namespace}, {tiers[i%len(tiers)]}, {p.owner}}
		w.put(NewKey(p.namespace, p.name), p, values[:indexes])
	}
	w.Commit(nil)
	return t
}

// BenchmarkBytes measures the memory of a table without the objects and their texts, and the memory
// allocated to fill it in one write.
func BenchmarkBytes(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		all := pods(n)
		for _, indexes := range []int{0, 1, 3} {
			b.Run(fmt.Sprint(n, "/", indexes), func(b *testing.B) {
				bytes := 0
				for b.Loop() {
					b.StopTimer()
					before := heap()
					b.StartTimer()
					t := filled(all, indexes)
					b.StopTimer()
					bytes += heap() - before
					runtime.KeepAlive(t)
					b.StartTimer()
				}
				b.ReportMetric(float64(bytes)/float64(b.N)/float64(n), "B/obj")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/obj")
				runtime.KeepAlive(all)
			})
		}
	}
}

func BenchmarkTable(b *testing.B) {
	all := pods(100_000)
	b.Run("get", func(b *testing.B) { benchmarkGet(b, all) })
	for _, indexes := range []int{0, 1, 3} {
		for _, snapshots := range []bool{false, true} {
			b.Run(fmt.Sprint("put/", indexes, "/", snapshots), func(b *testing.B) {
				benchmarkPut(b, all, indexes, snapshots)
			})
		}
	}
	b.Run("churn", func(b *testing.B) { benchmarkChurn(b, all) })
	t := filled(all, 3)
	for _, one := range []struct {
		index int
		value string
	}{{2, "owner-77"}, {0, "namespace-55"}, {1, "tier-3"}} {
		b.Run("byindex/"+one.value, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ObjectsOfHaving[any](t.Snapshot(), one.index, one.value)
			}
		})
	}
	benchmarkWhole(b, t)
}

func benchmarkGet(b *testing.B, all []*pod) {
	t := filled(all, 0)
	keys := make([]string, len(all))
	for i, p := range all {
		keys[(i*7919)%len(all)] = p.namespace + "/" + p.name
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok := t.Get(keys[i%len(keys)]); !ok {
			b.Fatal("an object is missing")
		}
	}
}

// benchmarkPut updates one object after the other, with occasional snapshots.
func benchmarkPut(b *testing.B, all []*pod, indexes int, snapshots bool) {
	t := filled(all, indexes)
	values := [][]string{{""}, {"tier-0"}, {""}}[:indexes]
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := all[(i*7919)%len(all)]
		if indexes > 0 {
			values[0][0] = p.namespace
		}
		if indexes > 2 {
			values[2][0] = p.owner
		}
		w := begin(t, 1)
		w.put(NewKey(p.namespace, p.name), p, values)
		w.Commit(nil)
		if snapshots && i%700 == 0 {
			t.Snapshot()
		}
	}
}

// benchmarkChurn removes an object and adds it again, as one operation.
func benchmarkChurn(b *testing.B, all []*pod) {
	t := filled(all, 1)
	values := [][]string{{""}}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		p := all[(i*7919)%len(all)]
		key := NewKey(p.namespace, p.name)
		w := begin(t, 1)
		w.remove(key)
		w.Commit(nil)
		w = begin(t, 1)
		values[0][0] = p.namespace
		w.put(key, p, values)
		w.Commit(nil)
	}
}

// benchmarkWhole reads the whole table.
func benchmarkWhole(b *testing.B, t *Table) {
	run := func(name string, read func(s *Snapshot)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				read(t.Snapshot())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(t.Len()), "ns/obj")
		})
	}
	run("list", func(s *Snapshot) { AppendObjectsOf(make([]any, 0, s.Len()), s) })
	run("iterate", func(s *Snapshot) { ObjectsOf(s, func(any) bool { return true }) })
	keys := func(s *Snapshot) { keysIn(s) }
	run("keys", keys)
	w := begin(t, many)
	w.each(func(_ uint32, key Key, obj any) { w.put(KeyOf(key.String()), obj, make([][]string, 3)) })
	w.Commit(nil)
	run("kept keys", keys)
}

// BenchmarkChecksum is what the checksum adds to an update of an entry.
func BenchmarkChecksum(b *testing.B) {
	key, before, sum := NewKey("namespace-1", "pod-00000001"), OriginOf("1", "uid"), uint64(0)
	for b.Loop() {
		before.version++
		keySum := key.checksum()
		sum ^= before.checksum(keySum)
		sum ^= packedOrigin{before.version + 1, before.uid}.checksum(keySum)
	}
	runtime.KeepAlive(sum)
}
