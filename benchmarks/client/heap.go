package client

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// lookEvery is well below the time between two collections of a heap that is large enough to be of
// interest: with 100 MiB live and GOGC=10 there are 10 MiB to allocate.
const lookEvery = time.Millisecond

// peakDuring returns the largest live heap that a collection found while the work was done.
func peakDuring(work func()) (bytes uint64) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	return peakAt(ticker.C, work)
}

// peakAt looks at the heap at each tick. The live heap from before does not count.
func peakAt(ticks <-chan time.Time, work func()) (bytes uint64) {
	runtime.GC()
	_, before := lastCollection()
	look := func() {
		live, cycle := lastCollection()
		if cycle != before {
			bytes = max(bytes, live)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	for {
		select {
		case <-ticks:
			look()
		case <-done:
			look()
			return bytes
		}
	}
}

// lastCollection returns what the last collection found live, and its number.
func lastCollection() (live, cycle uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

// liveHeap collects twice, since pools keep objects for one collection, and returns the rest.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
