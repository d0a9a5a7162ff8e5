package soak

import (
	"runtime"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Weight is what a process takes.
type Weight struct {
	// Heap is the bytes that are alive on it, Objects in how many pieces.
	Heap, Objects int64
	// Goroutines is how many there are, those of the test included.
	Goroutines int
}

// Hour is what was measured at the end of one hour, when everything had come to rest.
type Hour struct {
	Number int
	Weight
	// Settled is how long the world took to be as the source has it, once that had
	// repaired. Wrong says what still differed after three minutes; it is empty.
	Settled time.Duration
	Wrong   string
	// Backlog is how many changes wait for handlers, and Peak the longest backlog that a
	// handler with a bound had at the end of any minute.
	Backlog, Peak int
	// Stored and Indexed are how many objects, and index values, all stores hold.
	Stored, Indexed int
	// Watches are open at the source, Connections in the network.
	Watches, Connections int
	// Did is what happened in this hour.
	Did Counts
}

// Counts counts what happens.
type Counts struct {
	// Writes of the source, Calls of the handlers that stay, Reports to error handlers,
	// Requests to the source, and Faults.
	Writes, Calls, Reports, Requests, Faults int
}

// weighProcess weighs the process.
func weighProcess() Weight {
	synctest.Wait()
	// Twice: pooled objects, and those with a cleanup, are released by the second.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return Weight{
		Heap: int64(stats.HeapAlloc), Objects: int64(stats.HeapObjects), Goroutines: runtime.NumGoroutine(),
	}
}

func (w *world) counts() Counts {
	c := Counts{
		Writes: w.churn.writes, Faults: w.faults.happened,
		Requests: w.source.ListCalls() + w.source.WatchCalls(),
	}
	for _, mirror := range w.mirrors {
		c.Reports += int(mirror.reports.Load())
		for _, handler := range mirror.owner.Status().Handlers {
			c.Calls += int(handler.Delivered)
		}
	}
	return c
}

// boundedBacklog is the longest backlog that a handler with a bound has now.
func (w *world) boundedBacklog() int {
	most := 0
	for _, mirror := range w.mirrors {
		most = max(most, mirror.backlog())
	}
	return most
}

// forget has the test's own source and network drop what they keep of the hour, so that
// only the mirrors are weighed: the states of the last four lists, of which each keeps
// old objects alive, and connections kept for the next request.
func (w *world) forget() {
	for range 4 {
		w.source.Advance(1)
		_, err := w.source.List(metav1.ListOptions{})
		must(err)
	}
	w.server.Client().CloseIdleConnections()
}

// measure takes an hour's measures, and begins the record of requests anew.
func (w *world) measure(number, peak int, began Counts) Hour {
	hour := Hour{Number: number, Peak: peak, Did: w.counts().since(began)}
	w.source.ResetRequests()
	hour.Weight = weighProcess()
	for _, mirror := range w.mirrors {
		hour.Stored += len(mirror.store.ListKeys())
		hour.Indexed += mirror.indexed()
		for _, handler := range mirror.owner.Status().Handlers {
			hour.Backlog += handler.Backlog
		}
	}
	hour.Watches, hour.Connections = w.source.ActiveWatches(), w.server.Listener.Connections()
	return hour
}

func (c Counts) since(began Counts) Counts {
	return Counts{
		Writes: c.Writes - began.Writes, Calls: c.Calls - began.Calls, Reports: c.Reports - began.Reports,
		Requests: c.Requests - began.Requests, Faults: c.Faults - began.Faults,
	}
}
