package table

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkLookup reads entries in random order, as texts and as names, one by one and several at
// once.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		all := pods(n)
		for _, p := range all {
			p.name, p.namespace = strings.Clone(p.name), strings.Clone(p.namespace)
		}
		t := filled(all, 1)
		texts, keys := make([]string, n), make([]Key, n)
		for i := range n {
			p := all[i*7919%n]
			texts[i] = p.namespace + "/" + p.name
			keys[i] = NewKey(strings.Clone(p.namespace), strings.Clone(p.name))
		}
		b.Run(fmt.Sprint("text/", n), func(b *testing.B) {
			at := 0
			for b.Loop() {
				if _, ok := t.Get(texts[at]); !ok {
					b.Fatal("an object is missing")
				}
				if at++; at == n {
					at = 0
				}
			}
		})
		b.Run(fmt.Sprint("key/", n), func(b *testing.B) {
			at := 0
			for b.Loop() {
				if _, ok := t.GetKey(keys[at]); !ok {
					b.Fatal("an object is missing")
				}
				if at++; at == n {
					at = 0
				}
			}
		})
		b.Run(fmt.Sprint("all/", n), func(b *testing.B) {
			at := 0
			var places [32]Place
			for b.Loop() {
				for i := range places {
					places[i] = t.Seek(keys[at+i])
				}
				for i, place := range places {
					if !t.Find(keys[at+i], place).Exists {
						b.Fatal("an object is missing")
					}
				}
				if at += 32; at+32 > n {
					at = 0
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/key")
		})
	}
}
