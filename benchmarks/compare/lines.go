package main

import (
	"fmt"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/calls"
	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// scale is how much is measured.
type scale struct {
	pods int // of a sync
	// theirPods are those of client-go, if not as many: in the short form, which judges ours alone,
	// most of the time would go there.
	theirPods int
	changes   int
	listed    int
	// collectors: a sync is measured with the world stopped, and with the collector beside the
	// program.
	collectors []collector

	objects int // small ones
	updates int
	stalled int // updates while a handler hangs
	waits   int // single events and bursts that are timed

	calls calls.Scale
	// passes is how often those are measured whose best pass counts.
	passes int
	// allPasses is how often all are measured, if not 0.
	allPasses int
}

// collector is how the garbage collector works.
type collector string

const (
	stopsTheWorld collector = ""
	isConcurrent  collector = ", concurrent GC"
)

var (
	// fullScale is that of the goals.
	fullScale = scale{
		pods: 100_000, changes: 20_000, listed: 40_000,
		collectors: []collector{stopsTheWorld, isConcurrent},
		objects:    100_000, updates: 1_000_000, stalled: 500_000, waits: 2000,
		calls: calls.Full, passes: 5,
	}
	// simpleScale is that of the calls that programs make first, in five minutes.
	simpleScale = scale{
		objects: 100_000, updates: 300_000, waits: 1000,
		calls: calls.Full, passes: 5,
	}
	// shortScale takes some minutes on two cores. A sync cannot be made smaller at will: objects on
	// their way between source and store, some MiB, must remain small beside what has been stored.
	shortScale = scale{
		pods: 20_000, theirPods: 4000, changes: 4000, listed: 10_000,
		collectors: []collector{stopsTheWorld},
		objects:    40_000, updates: 200_000, stalled: 50_000, waits: 200,
		calls: calls.Short, passes: 1,
	}
)

// How much is measured at any scale: that is cheap, and a goal is of this number.
const (
	idleInformers = 1000
	delayObjects  = 10_000
	burst         = 100
	burstHandlers = 5
	stuckHandlers = 4
)

// The goals of a first list's memory: a tenth more than what it leaves.
const (
	goalPeak           = 1.10
	goalPeakConcurrent = 1.25
)

// peakGC makes the peak of the live heap visible: with the default of 100 there are few
// collections, and what they find is chance.
const peakGC = 10

// lines are all workloads that have processes of their own.
func (s scale) lines() []line {
	lines := append(s.syncLines(), s.podLines()...)
	for _, form := range []sides.Form{sides.TypedInformer, sides.SharedInformer} {
		lines = append(lines, s.listLines(form)...)
		lines = append(lines, s.updateLines(form)...)
		lines = append(lines, s.delayLines(form)...)
		lines = append(lines, s.stuckLines(form)...)
		lines = append(lines, s.idleLines(form)...)
	}
	lines = append(lines, s.controllerLines()...)
	for i := range lines {
		if s.allPasses > 0 {
			lines[i].passes = s.allPasses
		}
	}
	return lines
}

func (s scale) syncLines() []line {
	var lines []line
	for _, collector := range s.collectors {
		for _, strategy := range []sides.Strategy{sides.Pages, sides.Whole} {
			for _, format := range sides.Formats {
				lines = append(lines, s.sync(strategy, format, collector))
			}
		}
	}
	return lines
}

func (s scale) sync(strategy sides.Strategy, format sides.Format, collector collector) line {
	number := map[sides.Strategy]string{sides.Pages: "A1", sides.Whole: "A3"}[strategy]
	peak := stableFigure("peak / steady", upTo(goalPeak), 0)
	if collector == isConcurrent {
		peak = timeFigure("peak / steady", upTo(goalPeakConcurrent))
	}
	return line{
		name: fmt.Sprintf("%s sync, %s, %s%s", number, strategy, format, collector),
		task: client.Task{
			Work: client.Sync, Items: s.pods,
			Strategy: strategy, Target: sides.Target{Format: format},
			GCPercent: peakGC, StopTheWorld: collector == stopsTheWorld,
		},
		theirItems: s.theirPods,
		figures:    []figure{peak},
		passes:     1,
		// The short form has each strategy and each format, but not each pair of them.
		isLong: (strategy == sides.Pages) == (format == sides.JSONTyped),
	}
}

// podLines are of sources alone: nothing keeps the pods.
func (s scale) podLines() []line {
	var lines []line
	for _, format := range []sides.Format{sides.JSONTyped, sides.JSONUnstructured} {
		for _, work := range []client.Work{client.Events, client.Stream} {
			l := s.pod("A4 "+string(work), work, format,
				timeFigure("CPU us/pod", less(2.6)),
				stableFigure("kB allocated/pod", goal{}, 0))
			l.task.Items = s.changes
			l.isLong = work == client.Stream
			lines = append(lines, l)
		}
	}
	whole := s.pod("A5 list, pages of 500", client.List, sides.ProtobufTyped,
		timeFigure("CPU us/pod", less(1.5)),
		stableFigure("kB allocated/pod", less(2), 0))
	const threeFields = "A5 list of three fields, pages of 500"
	protobuf := s.pod(threeFields, client.List, sides.ProtobufTyped,
		timeFigure("CPU us/pod", less(6)),
		stableFigure("allocations/pod", less(8), 0.02))
	protobuf.task.Target.Projected = true
	json := s.pod(threeFields, client.List, sides.JSONTyped,
		timeFigure("CPU us/pod", goal{}),
		stableFigure("allocations/pod", goal{}, 0.02))
	json.task.Target.Projected = true
	return append(lines, whole, protobuf, json)
}

// pod is a line of pods that are listed.
func (s scale) pod(name string, work client.Work, format sides.Format, figures ...figure) line {
	name = fmt.Sprintf("%s, %s", name, format)
	task := client.Task{Work: work, Target: sides.Target{Format: format}, Items: s.listed}
	return line{name: name, task: task, figures: figures, passes: s.passes}
}

// informer is a line of an informer and its handlers.
func (s scale) informer(name string, form sides.Form, task client.Task, figures ...figure) line {
	task.Form = form
	name = fmt.Sprintf("%s, %s", name, form)
	return line{name: name, task: task, figures: figures, passes: s.passes}
}

func (s scale) listLines(form sides.Form) []line {
	relist := s.informer("A6 relist, 1 % changed", form,
		client.Task{
			Work: client.ChangedList, Items: s.objects,
			GCPercent: peakGC, StopTheWorld: true,
		},
		stableFigure("peak / steady", upTo(goalPeak), 0),
		stableFigure("calls for unchanged objects", upTo(0), 0))
	relist.passes = 1
	first := s.informer("A2 first list, small objects", form,
		client.Task{Work: client.FirstList, Items: s.objects},
		stableFigure("allocations/object", upTo(3), 0.02),
		timeFigure("CPU us/object", less(2)))
	return []line{first, relist}
}

// How many events are handled together depends on how busy the machine is, and what each batch
// costs is divided by them. One allocation for each event is far more.
const (
	batchSlack = 0.03
	batchBytes = 24
)

func (s scale) updateLines(form sides.Form) []line {
	allocations := 2.0
	if form == sides.SharedInformer {
		allocations++ // the program's index function makes one
	}
	updates := func(name string, handlers int, cpu, wall float64) line {
		return s.informer(name, form,
			client.Task{Work: client.Updates, Items: s.objects, Count: s.updates, Handlers: handlers},
			timeFigure("CPU us/event", less(cpu)),
			timeFigure("wall us/event", less(wall)),
			stableFigure("allocations/event", upTo(allocations), batchSlack),
			stableFigure("B/event", goal{}, batchBytes),
			looseFigure("handler calls/event"))
	}
	paced := s.informer("B4 500 events/s, one at a time", form,
		client.Task{Work: client.Paced, Items: delayObjects, Count: s.waits, Handlers: 1},
		timeFigure("CPU us/event", less(1.05)))
	return []line{
		updates("B1-B3 updates, 1 handler", 1, 3, 2.2),
		updates("B1-B3 updates, 5 handlers", 5, 4.5, 3.5),
		paced,
	}
}

func (s scale) delayLines(form sides.Form) []line {
	bursts := s.informer(fmt.Sprintf("F2 bursts of %d, %d handlers", burst, burstHandlers), form,
		client.Task{
			Work: client.Delays, Items: delayObjects,
			Count: s.waits / 4, Handlers: burstHandlers, Burst: burst,
		},
		timeFigure("us to a handler, p50", less(2.3)),
		timeFigure("us to a handler, p99", less(2)))
	return []line{s.singles("F1 single events", form, 1.05), bursts}
}

// singles are single events to one handler.
func (s scale) singles(name string, form sides.Form, times float64) line {
	l := s.informer(name, form,
		client.Task{Work: client.Delays, Items: delayObjects, Count: s.waits, Handlers: 1, Burst: 1},
		timeFigure("us to a handler, p50", less(times)),
		timeFigure("us to a handler, p99", goal{}))
	l.isSimple = true
	return l
}

func (s scale) stuckLines(form sides.Form) []line {
	stalled := func(name string, delivery cache.Delivery, most float64) line {
		l := s.informer("B18 stalled handler, "+name, form,
			client.Task{Work: client.Stalled, Items: s.stalled, Delivery: delivery},
			stableFigure("MiB more, at most", upTo(most), 0.25),
			stableFigure("MiB more, drained", upTo(1), 0.25))
		l.passes = 1
		return l
	}
	// Pending changes are fewer than twice the objects, from where ours merges them. One handler is
	// not stuck.
	pending := s.informer(fmt.Sprintf("F3 pending events, %d stuck handlers", stuckHandlers), form,
		client.Task{
			Work: client.Pending, Items: s.objects,
			Count: s.objects * 3 / 2, Handlers: stuckHandlers + 1,
		},
		stableFigure("B/pending event", upTo(100), 1))
	pending.passes = 1
	return []line{
		stalled("ordered", cache.Ordered, 8),
		stalled("coalesced", cache.Coalesced, 1),
		pending,
	}
}

func (s scale) idleLines(form sides.Form) []line {
	return []line{
		s.informer("G idle informer", form,
			client.Task{Work: client.Idle, Items: idleInformers},
			stableFigure("goroutines/informer", upTo(3), 0),
			stableFigure("KiB heap + stack/informer", upTo(36), 0)),
		s.informer("G 1,000 idle informers", form,
			client.Task{Work: client.IdleCPU, Items: idleInformers},
			timeFigure("CPU us/s", upTo(150))),
	}
}

// controllerLines are those of a controller that needs no queue of the program's.
func (s scale) controllerLines() []line {
	updates := s.informer("C3 updates", sides.StoreAndHandler,
		client.Task{Work: client.Updates, Items: s.objects, Count: s.updates, Handlers: 1},
		timeFigure("CPU us/event", less(1.7)),
		looseFigure("allocations/event"), // they depend on how large batches get
		looseFigure("handler calls/event"))
	updates.isSimple = true
	return []line{updates, s.singles("C3 single events", sides.StoreAndHandler, 0.95)}
}
