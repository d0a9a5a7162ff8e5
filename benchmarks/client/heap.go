package client

import (
	"runtime"
	"runtime/metrics"
	"sync"
	"time"
)

// heapPeak watches for the largest live heap after a collection.
type heapPeak struct {
	looks []look
	stop  chan struct{}
	wait  sync.WaitGroup
}

// look is what the last of some collections found live.
type look struct {
	bytes uint64
	// cycle is the number of that collection.
	cycle uint64
}

const (
	liveMetric   = "/gc/heap/live:bytes"
	cyclesMetric = "/gc/cycles/total:gc-cycles"
)

// lookEvery is well below the time between two collections of a heap that is large
// enough to be of interest: with 100 MiB live and GOGC=10 there are 10 MiB to allocate.
const lookEvery = time.Millisecond

// begin starts to look, at each tick.
func (p *heapPeak) begin(ticks <-chan time.Time) {
	p.stop = make(chan struct{})
	p.looks = []look{lookAtHeap()}
	p.wait.Go(func() {
		for {
			select {
			case <-p.stop:
				return
			case <-ticks:
				p.note(lookAtHeap())
			}
		}
	})
}

func (p *heapPeak) note(now look) {
	if now.cycle != p.looks[len(p.looks)-1].cycle {
		p.looks = append(p.looks, now)
	}
}

func (p *heapPeak) end() {
	close(p.stop)
	p.wait.Wait()
	p.note(lookAtHeap())
}

// during looks at the heap while something is done.
func (p *heapPeak) during(work func() error) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	p.begin(ticker.C)
	defer p.end()
	return work()
}

// bytes is the peak. The live heap from before begin does not count.
func (p *heapPeak) bytes() uint64 {
	var most uint64
	for _, look := range p.looks[1:] {
		most = max(most, look.bytes)
	}
	return most
}

// missed is how many collections nobody looked at that may have found as much as the
// peak: those beside one which found three quarters of it.
func (p *heapPeak) missed() uint64 {
	var missed uint64
	peak := p.bytes()
	for n, look := range p.looks[1:] {
		if look.bytes >= peak/4*3 {
			missed += look.cycle - p.looks[n].cycle - 1
		}
	}
	return missed
}

func lookAtHeap() look {
	samples := []metrics.Sample{{Name: liveMetric}, {Name: cyclesMetric}}
	metrics.Read(samples)
	return look{bytes: samples[0].Value.Uint64(), cycle: samples[1].Value.Uint64()}
}

// liveHeap collects twice, since pools keep objects for one collection, and returns the rest.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
