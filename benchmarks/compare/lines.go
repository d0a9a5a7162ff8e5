package main

import (
	"time"

	"github.com/watchmirror/cache/benchmarks/calls"
	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// scale is how much is measured.
type scale struct {
	pods       int // of a sync
	theirPods  int // the same for client-go, 0 for as many
	changes    int
	listed     int
	syncPasses int
	concurrent bool // a sync is repeated with the collector beside the program
	cpuPasses  int

	theirUpdates int // while a handler hangs, 0 for as many
	idlePasses   int

	objects int // small ones
	updates int
	waits   int // single events and bursts that are timed
	passes  int

	calls calls.Scale
}

var (
	// fullScale is that of the goals.
	fullScale = scale{pods: 100_000, changes: 20_000, listed: 40_000, syncPasses: 1, concurrent: true, cpuPasses: 5,
		idlePasses: 5,
		objects:    100_000, updates: 1_000_000, waits: 2000, passes: 5,
		calls: calls.Full}
	// simpleScale is that of the calls that programs make first, in five minutes.
	simpleScale = scale{objects: 100_000, updates: 300_000, waits: 1000, passes: 5, calls: calls.Full}
	// shortScale takes some minutes on two cores. A sync cannot be made
	// smaller at will: objects on their way between source and store, some MiB, must
	// remain small beside what has been stored.
	shortScale = scale{pods: 20_000, theirPods: 4_000, changes: 4_000, listed: 10_000, syncPasses: 1, cpuPasses: 1,
		theirUpdates: 50_000, idlePasses: 2,
		objects: 40_000, updates: 200_000, waits: 200, passes: 1,
		calls: calls.Short}
)

// The goals. Memory: of a first list, at most a tenth more than what it leaves. CPU and
// bytes: so many times less than client-go.
const (
	goalPeak           = 1.10
	goalPeakConcurrent = 1.25 // where the collector runs beside the program
	goalEventCPU       = 2.6
	goalListCPU        = 1.5
	goalListBytes      = 2
	// Where three fields are named.
	goalProjectedCPU     = 6
	goalProjectedMallocs = 8
	none                 = 0
)

const (
	timeout = 20 * time.Minute
	// syncGC makes the peak of the live heap visible: with the default of 100 there are
	// few collections, and what they find is chance.
	syncGC    = 10
	defaultGC = 100
)

// form is an encoding and the type of its objects.
type form struct {
	name     string
	encoding sides.Encoding
	objects  sides.Objects
}

var (
	jsonTyped        = form{"JSON typed", sides.JSON, sides.Typed}
	jsonUnstructured = form{"JSON unstructured", sides.JSON, sides.Unstructured}
	protobufTyped    = form{"protobuf typed", sides.Protobuf, sides.Typed}
)

// lines are all workloads that have processes of their own.
func lines(s scale) []line {
	var all []line
	for _, exact := range []bool{true, false} {
		if !exact && !s.concurrent {
			continue
		}
		all = append(all,
			s.sync("A1 sync, pages of 500, ", sides.Pages, protobufTyped, exact, false),
			s.sync("A1 sync, pages of 500, ", sides.Pages, jsonTyped, exact, true),
			s.sync("A1 sync, pages of 500, ", sides.Pages, jsonUnstructured, exact, false),
			s.sync("A3 sync, one body, ", sides.Whole, protobufTyped, exact, true),
			s.sync("A3 sync, one body, ", sides.Whole, jsonTyped, exact, false),
			s.sync("A3 sync, one body, ", sides.Whole, jsonUnstructured, exact, true),
		)
	}
	for _, form := range []form{jsonTyped, jsonUnstructured} {
		all = append(all, s.events("A4 watch, "+form.name, client.Events, form, goalEventCPU, false))
	}
	for _, form := range []form{jsonTyped, jsonUnstructured} {
		all = append(all, s.events("A4 streaming list, "+form.name, client.Stream, form, goalEventCPU, true))
	}
	all = append(all,
		s.list("A5 list, pages of 500, ", protobufTyped, goalListCPU, goalListBytes),
		s.projected(protobufTyped, goalProjectedCPU, goalProjectedMallocs),
		s.projected(jsonTyped, none, none),
	)
	return append(all, s.informerLines()...)
}

func (s scale) sync(name string, strategy sides.Strategy, form form, exact, long bool) line {
	name += form.name
	if !exact {
		name += ", concurrent GC"
	}
	task := form.task(client.Sync, strategy, s.pods, syncGC)
	task.StopTheWorld = exact
	most := goalPeak
	if !exact {
		most = goalPeakConcurrent
	}
	return line{
		name:       name,
		figures:    []figure{peakOverSteady(most, exact)},
		task:       task,
		theirItems: s.theirPods,
		passes:     s.syncPasses,
		long:       long,
	}
}

func (s scale) events(name string, work client.Work, form form, times float64, long bool) line {
	return line{
		name:    name,
		figures: []figure{cpuPerItem(times), bytesPerItem(none)},
		task:    form.task(work, sides.Whole, s.changes, defaultGC),
		passes:  s.cpuPasses,
		long:    long,
	}
}

func (s scale) list(name string, form form, cpu, bytes float64) line {
	return line{
		name:    name + form.name,
		figures: []figure{cpuPerItem(cpu), bytesPerItem(bytes)},
		task:    form.task(client.List, sides.Pages, s.listed, defaultGC),
		passes:  s.cpuPasses,
	}
}

// projected is list where ours names three fields that it needs.
func (s scale) projected(form form, cpu, times float64) line {
	l := s.list("A5 list of three fields, pages of 500, ", form, cpu, none)
	l.figures = []figure{cpuPerItem(cpu), mallocs("pod", less(times))}
	l.task.Projected = true
	return l
}

func (f form) task(work client.Work, strategy sides.Strategy, items, gcPercent int) client.Task {
	return client.Task{Work: work, Strategy: strategy, Encoding: f.encoding, Objects: f.objects,
		Items: items, GCPercent: gcPercent, Timeout: timeout}
}
