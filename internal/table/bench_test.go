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
