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

// Work is what is measured.
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
	// Stalled has a handler hang while one object changes: Heap and Drained.
	Stalled Work = "stalled handler"
	// Relist lists again what has not changed: Calls.
	Relist Work = "relist"
	// Late adds a handler to an informer that runs: Join, and the pauses.
	Late Work = "late handler"
	// Behind has a handler hang until more waits for it than is kept unmerged, and looks
	// at what another one waits for meanwhile: HandlerDelay, BeforeDelay and Calls.
	Behind Work = "handler falls behind"
)

// withoutServer is what does the works that need no server.
var withoutServer = map[Work]func(Task, context.Context) (Result, error){
	Idle: Task.idle, Stalled: Task.stalled, Relist: Task.relist, Late: Task.late, Behind: Task.behind,
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
	// Form and Delivery are for works without a server, and of ours only.
	Form     sides.Form
	Delivery sides.Delivery
	// Window is for Late: for how long changes and looks begin once the handler is added.
	Window time.Duration
	// GCPercent is the process's GOGC.
	GCPercent int
	// StopTheWorld makes each collection do all of its work while nothing else runs.
	// Its live heap is then what was reachable. Otherwise, what is allocated while a
	// collection runs counts as live too: up to a tenth of the heap if GOGC is 10, and
	// more on a machine that has too little CPU for the collector to keep up.
	StopTheWorld bool
	// Profiles is a file name; a CPU profile and one of the allocations are written to
	// it with .cpu and .allocs behind. Empty is none. It costs the measurement some
	// percents.
	Profiles string
	// Timeout is how long the task may take.
	Timeout time.Duration
	// Gzip makes the server compress lists for clients that ask for it: by default
	// both sides do.
	Gzip bool
}

// Server is what the task needs of a server.
func (t Task) Server() apiserver.Config {
	config := apiserver.Config{Pods: t.Items, Paged: t.Strategy == sides.Pages, Gzip: t.Gzip}
	switch t.Work {
	case Events:
		// As many pods as make all shapes and some namespaces; they change in turn.
		config.Pods, config.Events = min(t.Items, 10*pods.PerNamespace), t.Items
	case Stream:
		config.Streams = true
	case Sync:
		config.Streams = t.Strategy == sides.Stream
	}
	return config
}

// Result is what a task found.
type Result struct {
	Items   int
	Seconds float64
	// CPU is user and system time of the process, in seconds.
	CPU float64
	// Bytes and Mallocs are what was allocated.
	Bytes, Mallocs uint64
	// Peak is the largest live heap after a collection, Steady the live heap at the
	// end, in bytes.
	Peak, Steady uint64
	// Missed is how many collections may have found more than Peak: it is looked at the
	// heap every millisecond, and two collections may fall between two looks.
	Missed uint64

	// Goroutines, Heap and Stack (in bytes) are how much more there are of them than
	// at the start: of all idle informers, or while a handler hangs. Drained is Heap
	// once that handler has been told of everything.
	Goroutines, Heap, Stack, Drained int64
	// Calls is how often a handler was called for what had not changed, or one that fell
	// behind for what had.
	Calls int64
	// StoreDelay and HandlerDelay are how long the slowest change took, while another
	// handler was added or fell behind, to get from the source into the store and to a
	// handler; ReadDelay is how long the slowest look into the store took. BeforeDelay is
	// HandlerDelay of as many changes just before. In seconds.
	StoreDelay, HandlerDelay, ReadDelay, BeforeDelay float64
	// Join is how many seconds it took until the added handler was told of everything.
	Join float64
}

// run does the task, against a server if it needs one.
func (t Task) run(ctx context.Context, url string) (Result, error) {
	if work := withoutServer[t.Work]; work != nil {
		return work(t, ctx)
	}
	source, err := t.Side.Open(sides.Target{URL: url, Encoding: t.Encoding, Objects: t.Objects})
	if err != nil {
		return Result{}, err
	}
	if t.Work == Sync {
		return t.sync(ctx, source)
	}
	work := func(items int) (int, error) { return t.read(ctx, source, items) }
	// What is done once in a process, and what is grown once, is not what is measured.
	if _, err := work(min(t.Items, pageSize)); err != nil {
		return Result{}, fmt.Errorf("warming up: %w", err)
	}
	return t.measured(func() (int, error) { return work(t.Items) })
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
	var cache sides.Cache
	var peak heapPeak
	result, err := t.measured(func() (int, error) {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		peak.begin(ticker.C)
		defer peak.end()
		var err error
		if cache, err = source.Fill(ctx, t.Strategy, pods.Strip); err != nil {
			return 0, err
		}
		return cache.Len(), nil
	})
	if err != nil {
		return result, err
	}
	if n, err := cache.InNamespace(pods.Namespace(0)); err != nil || n != min(t.Items, pods.PerNamespace) {
		return result, fmt.Errorf("the index has %d of the first namespace's pods (%w)", n, err)
	}
	result.Peak, result.Missed = peak.bytes(), peak.missed()
	result.Steady = liveHeap()
	// The cache must be there until here, and so must what it has been filled from.
	_ = cache.Len()
	return result, nil
}
