package client

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/benchmarks/apiserver"
	"github.com/watchmirror/cache/benchmarks/pods"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// Work is measured.
type Work string

// The works there are.
const (
	// Sync fills a cache, and looks at the heap: its figures are Peak and Steady.
	Sync Work = "sync"
	// List reads the list and keeps nothing.
	List Work = "list"
	// Events reads changes and keeps nothing.
	Events Work = "events"
	// Stream reads a streaming list and keeps nothing.
	Stream Work = "stream"
)

// The works that need no server: what an informer and its handlers do with what has come.
const (
	// Idle runs many informers that have nothing to do: Goroutines, Heap and Stack.
	Idle Work = "idle informers"
	// IdleCPU runs them in virtual time: Seconds of it and CPU.
	IdleCPU Work = "idle informers in virtual time"
	// Stalled has a handler hang while one object changes: Heap and Drained.
	Stalled Work = "stalled handler"
)

// The works on small objects. Each is counted in Count operations, on Items objects.
const (
	// FirstList lists pages that were made before.
	FirstList Work = "first list"
	// ChangedList lists again what has changed in part: Peak, Steady and Calls.
	ChangedList Work = "changed list"
	// Updates sends changes through an informer to its handlers: Source is what sending
	// them costs.
	Updates Work = "updates"
	// Delays times changes from the source to the handlers.
	Delays Work = "delays"
	// Paced sends changes one at a time, so many a second that everything sleeps in between.
	Paced Work = "paced"
	// Pending has handlers hang while changes wait for them: Heap.
	Pending Work = "pending"
)

// withoutServer is what does the works that need no server.
var withoutServer = map[Work]func(Task, context.Context) (Result, error){
	Idle:        Task.idle,
	IdleCPU:     Task.idleCPU,
	Stalled:     Task.stalled,
	FirstList:   Task.firstList,
	ChangedList: Task.changedList,
	Updates:     Task.updates,
	Delays:      Task.delays,
	Paced:       Task.paced,
	Pending:     Task.pending,
}

// NeedsServer says whether there must be a server.
func (w Work) NeedsServer() bool { return withoutServer[w] == nil }

// pageSize is the default of both sides.
const pageSize = 500

// Task is one measurement. It has a process of its own, so that nothing else is in its
// heap and its CPU time.
type Task struct {
	Side     sides.Side
	Work     Work
	Encoding sides.Encoding
	Objects  sides.Objects
	// Strategy is for Sync and List.
	Strategy sides.Strategy
	// Items is how many pods or events there are: the server's configuration follows
	// from it. Without a server it is how many informers, updates or objects.
	Items int
	// Projected is for List: see sides.Target.
	Projected bool
	// Form and Delivery are for works without a server, and of ours only.
	Form     sides.Form
	Delivery sides.Delivery
	// Count is how many operations there are, for works on small objects.
	Count int
	// Handlers is how many there are, Burst how many changes come at once.
	Handlers, Burst int
	// GCPercent is the process's GOGC.
	GCPercent int
	// StopTheWorld makes each collection do all of its work while nothing else runs.
	// Its live heap is then what was reachable. Otherwise, what is allocated while a
	// collection runs counts as live too: up to a tenth of the heap if GOGC is 10, and
	// more on a machine that has too little CPU for the collector to keep up.
	StopTheWorld bool
	// Timeout is how long the task may take.
	Timeout time.Duration
}

// Server is what the task needs of a server.
func (t Task) Server() apiserver.Config {
	config := apiserver.Config{Pods: t.Items, Paged: t.Strategy == sides.Pages}
	switch t.Work {
	case Events:
		// As many pods as make all shapes and some namespaces; they change in turn.
		config.Pods = min(t.Items, 10*pods.PerNamespace)
		config.Events = t.Items
	case Stream:
		config.Streams = true
	}
	return config
}

// run does the task, against a server if it needs one.
func (t Task) run(ctx context.Context, url string) (Result, error) {
	if work := withoutServer[t.Work]; work != nil {
		return work(t, ctx)
	}
	source, err := t.Side.Open(sides.Target{URL: url, Encoding: t.Encoding, Objects: t.Objects, Projected: t.Projected})
	if err != nil {
		return Result{}, err
	}
	if t.Work == Sync {
		return t.sync(ctx, source)
	}
	work := func(items int) (int, error) { return t.read(ctx, source, items) }
	// Work done once in a process, and growth, are not measured.
	if _, err := work(min(t.Items, pageSize)); err != nil {
		return Result{}, fmt.Errorf("warming up: %w", err)
	}
	return timed(t.Items, func() error {
		items, err := work(t.Items)
		if err != nil {
			return err
		}
		return t.checkCount(items)
	})
}

func (t Task) checkCount(items int) error {
	if items != t.Items {
		return fmt.Errorf("%d items of %d came", items, t.Items)
	}
	return nil
}

// read reads at least so many items.
func (t Task) read(ctx context.Context, source sides.Source, items int) (int, error) {
	switch t.Work {
	case List:
		limit := int64(0)
		if t.Strategy == sides.Pages {
			limit = pageSize
		}
		return source.List(ctx, limit, (items+pageSize-1)/pageSize)
	case Stream:
		yes := true
		return source.Watch(ctx, metav1.ListOptions{SendInitialEvents: &yes, AllowWatchBookmarks: true,
			ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}, items)
	case Events:
		return source.Watch(ctx, metav1.ListOptions{ResourceVersion: "1", AllowWatchBookmarks: true}, items)
	}
	return 0, fmt.Errorf("%q is no work", t.Work)
}

// sync fills a cache and measures the heap while it does.
func (t Task) sync(ctx context.Context, source sides.Source) (Result, error) {
	var cache *sides.Cache
	var peak heapPeak
	result, err := timed(t.Items, func() error {
		return peak.during(func() error {
			var err error
			cache, err = source.Fill(ctx, t.Strategy, pods.Strip)
			if err != nil {
				return err
			}
			return t.checkCount(cache.Len())
		})
	})
	if err != nil {
		return result, err
	}
	result.Peak = peak.bytes()
	result.Missed = peak.missed()
	result.Steady = liveHeap()
	// The cache must be there until here, and so must what it has been filled from.
	return result, t.checkCount(cache.Len())
}
