package footprint_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/footprint"
)

// A report of 100,000 pods from a sample must take less than 50 ms. Allocations are those of the
// report.
func BenchmarkMeasure(b *testing.B) {
	for _, name := range []string{"typed", "unstructured"} {
		store, _ := storeOf(b, 100_000, decoders[name])
		for _, sample := range []int{1000, footprint.Whole} {
			b.Run(fmt.Sprintf("%s/sample=%d", name, min(sample, 100_000)), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					_, err := footprint.Measure(b.Context(), store, footprint.Options{Sample: sample})
					require.NoError(b, err)
				}
			})
		}
	}
}

// BenchmarkWriter is an Update of one of 100,000 pods, alone and beside a report every second of
// writes.
func BenchmarkWriter(b *testing.B) {
	store, _ := storeOf(b, 100_000, decoders["metadata"])
	objects := store.List()
	for _, every := range []time.Duration{0, time.Second} {
		b.Run(fmt.Sprintf("report-every=%v", every), func(b *testing.B) {
			writeBeside(b, store, objects, every)
		})
	}
}

func writeBeside(b *testing.B, store cache.Indexer, objects []any, every time.Duration) {
	last := time.Now()
	at := 0
	for b.Loop() {
		if every > 0 && at%256 == 0 && time.Since(last) > every {
			b.StopTimer()
			_, err := footprint.Measure(b.Context(), store, footprint.Options{})
			require.NoError(b, err)
			b.StartTimer()
			last = time.Now()
		}
		require.NoError(b, store.Update(objects[at*7919%len(objects)]))
		at++
	}
}
