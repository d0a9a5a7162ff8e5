package client

import (
	"context"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/apiserver"
	"github.com/watchmirror/cache/benchmarks/pods"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// Work is what a task does.
type Work string

// The works on pods of a server.
const (
	// Sync fills a cache, and looks at the heap.
	Sync Work = "sync"
	// List reads a list in pages and keeps nothing.
	List Work = "list"
	// Events reads changes and keeps nothing.
	Events Work = "watch"
	// Stream reads a streaming list and keeps nothing.
	Stream Work = "streaming list"
)

// The works on small objects, whose source is in the client's own process.
const (
	// FirstList lists pages that were made before.
	FirstList Work = "first list"
	// ChangedList lists again what has changed in part.
	ChangedList Work = "changed list"
	// Updates sends Count changes through an informer to its handlers.
	Updates Work = "updates"
	// Paced sends Count changes one at a time, so many a second that everything sleeps in between.
	Paced Work = "paced"
	// Delays times Count bursts from the source to the handlers.
	Delays Work = "delays"
	// Stalled has a handler hang while one object changes.
	Stalled Work = "stalled handler"
	// Pending has handlers hang while Count changes wait for them.
	Pending Work = "pending"
	// Idle runs many informers that have nothing to do.
	Idle Work = "idle informers"
	// IdleCPU does so in virtual time.
	IdleCPU Work = "idle informers in virtual time"
)

var works = map[Work]func(Task, context.Context) (Result, error){
	Sync:        Task.sync,
	List:        Task.read,
	Events:      Task.read,
	Stream:      Task.read,
	FirstList:   Task.firstList,
	ChangedList: Task.changedList,
	Updates:     Task.updates,
	Paced:       Task.paced,
	Delays:      Task.delays,
	Stalled:     Task.stalled,
	Pending:     Task.pending,
	Idle:        Task.idle,
	IdleCPU:     Task.idleCPU,
}

// Task is one measurement. It has a process of its own, so that nothing else is in its heap and its
// CPU time.
type Task struct {
	Side sides.Side
	Work Work
	// Items is how many pods, objects, informers, or updates of a stalled handler's object there
	// are.
	Items int

	// Target is for works on pods. Run sets its URL.
	Target sides.Target
	// Strategy is for Sync.
	Strategy sides.Strategy

	// Form and Delivery are for works on small objects.
	Form     sides.Form
	Delivery cache.Delivery
	// Count is how many changes or bursts there are.
	Count int
	// Handlers is how many there are, Burst how many changes come at once.
	Handlers, Burst int

	// GCPercent is the process's GOGC, 0 the default.
	GCPercent int
	// StopTheWorld makes each collection do all of its work while nothing else runs. Its live heap
	// is then what was reachable. Otherwise, what is allocated while a collection runs counts as
	// live too: up to a tenth of the heap if GOGC is 10, and more on a machine that has too little
	// CPU for the collector to keep up.
	StopTheWorld bool
}

// server is what the task needs of a server, nil if it needs none.
func (t Task) server() *apiserver.Config {
	switch t.Work {
	case Sync:
		return &apiserver.Config{Pods: t.Items, Paged: t.Strategy == sides.Pages}
	case List:
		return &apiserver.Config{Pods: t.Items, Paged: true}
	case Events:
		// As many pods as make all shapes and some namespaces; they change in turn.
		return &apiserver.Config{Pods: min(t.Items, 10*pods.PerNamespace), Events: t.Items}
	case Stream:
		return &apiserver.Config{Pods: t.Items, Streams: true}
	}
	return nil
}
