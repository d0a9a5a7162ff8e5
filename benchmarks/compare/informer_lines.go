package main

import (
	"fmt"

	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// How much is measured at any scale: that is cheap, and a goal is of this number.
const (
	idleInformers  = 1000
	stalledUpdates = 500_000
	delayObjects   = 10_000
	burst          = 100
	burstHandlers  = 5
	stuckHandlers  = 4
)

var informerForms = []sides.Form{sides.TypedInformer, sides.SharedInformer}

// informerLines are the workloads that need no server.
func (s scale) informerLines() []line {
	var all []line
	for _, form := range informerForms {
		all = append(all, s.listLines(form)...)
		all = append(all, s.updateLine(form, 1, 3, 2.2), s.updateLine(form, 5, 4.5, 3.5))
		all = append(all, s.paced(form))
		all = append(all, s.delayLines(form)...)
		all = append(all, s.idleLines(form)...)
		all = append(all, s.stalled(form, "ordered", sides.Ordered, 8), s.stalled(form, "coalesced", sides.Coalesced, 1))
	}
	all = append(all, s.controllerLines()...)
	return all
}

func informerTask(work client.Work, form sides.Form, items, count int) client.Task {
	return client.Task{Work: work, Form: form, Items: items, Count: count, GCPercent: defaultGC, Timeout: timeout}
}

func (s scale) listLines(form sides.Form) []line {
	relist := informerTask(client.ChangedList, form, s.objects, 0)
	relist.GCPercent = syncGC
	relist.StopTheWorld = true
	return []line{
		{
			name:    "A2 first list, small objects, " + string(form),
			figures: []figure{mallocs("object", upTo(3)), cpu("object", less(2))},
			task:    informerTask(client.FirstList, form, s.objects, 0),
			passes:  s.passes,
		},
		{
			name:    "A6 relist, 1 % changed, " + string(form),
			figures: []figure{peakOverSteady(goalPeak, true), handlerCalls("calls for unchanged objects", 0)},
			task:    relist,
			passes:  1,
		},
	}
}

// updateLine has the goals of CPU time and throughput.
func (s scale) updateLine(form sides.Form, handlers int, cpu, more float64) line {
	task := informerTask(client.Updates, form, s.objects, s.updates)
	task.Handlers = handlers
	most := 2.0
	if form == sides.SharedInformer {
		most++ // the program's index function makes one
	}
	name := fmt.Sprintf("B1-B3 updates, %d handlers, %s", handlers, form)
	if handlers == 1 {
		name = "B1-B3 updates, 1 handler, " + string(form)
	}
	return line{
		name: name,
		figures: []figure{
			netCPU("B1 ", less(cpu)),
			throughput(goal{timesMore, more}),
			netMallocs("B3 ", upTo(most)),
			netBytes(goal{}),
			callsPerEvent(),
		},
		task:   task,
		passes: s.passes,
	}
}

func (s scale) paced(form sides.Form) line {
	task := informerTask(client.Paced, form, delayObjects, s.waits)
	task.Handlers = 1
	return line{
		name:    "B4 500 events/s, one at a time, " + string(form),
		figures: []figure{cpu("event", less(1.05))},
		task:    task,
		passes:  s.passes,
	}
}

func (s scale) delayLines(form sides.Form) []line {
	bursts := informerTask(client.Delays, form, delayObjects, s.waits/4)
	bursts.Handlers = burstHandlers
	bursts.Burst = burst
	// Pending changes are fewer than twice the objects, from where ours merges them.
	pending := informerTask(client.Pending, form, s.objects, s.objects*3/2)
	pending.Handlers = stuckHandlers + 1 // and one that is not
	return []line{
		s.singles("F1 single events, ", form, 1.05),
		{
			name: fmt.Sprintf("F2 bursts of %d, %d handlers, %s", burst, burstHandlers, form),
			figures: []figure{
				delay("to a handler, p50", medianDelay, less(2.3)),
				delay("to a handler, p99", p99Delay, less(2)),
			},
			task:   bursts,
			passes: s.passes,
		},
		{
			name:    fmt.Sprintf("F3 pending events, %d stuck handlers, %s", stuckHandlers, form),
			figures: []figure{pendingBytes(100)},
			task:    pending,
			passes:  1,
		},
	}
}

// singles are single events to one handler.
func (s scale) singles(name string, form sides.Form, times float64) line {
	task := informerTask(client.Delays, form, delayObjects, s.waits)
	task.Handlers = 1
	task.Burst = 1
	return line{
		name: name + string(form),
		figures: []figure{
			delay("to the handler, p50", medianDelay, less(times)),
			delay("to the handler, p99", p99Delay, goal{}),
		},
		task:   task,
		passes: s.passes,
		first:  true,
	}
}

func (s scale) idleLines(form sides.Form) []line {
	return []line{
		{
			name:    "G idle informer, " + string(form),
			figures: []figure{goroutines(3), heapAndStack(36)},
			task:    informerTask(client.Idle, form, idleInformers, 0),
			passes:  s.idlePasses,
		},
		{
			name:    "G 1,000 idle informers, " + string(form),
			figures: []figure{idleCPU(150)},
			task:    informerTask(client.IdleCPU, form, idleInformers, 0),
			passes:  s.idlePasses,
		},
	}
}

func (s scale) stalled(form sides.Form, name string, delivery sides.Delivery, most float64) line {
	task := informerTask(client.Stalled, form, stalledUpdates, 0)
	task.Delivery = delivery
	return line{
		name:       fmt.Sprintf("B18 stalled handler, %s, %s", name, form),
		figures:    []figure{heapGrowth(most), drainedGrowth(1)},
		task:       task,
		theirItems: s.theirUpdates,
		passes:     1,
	}
}

// controllerLines are those of a controller that needs no queue of the program's.
func (s scale) controllerLines() []line {
	task := informerTask(client.Updates, sides.StoreAndHandler, s.objects, s.updates)
	task.Handlers = 1
	// How many there are depends on how large batches get: more than a record bears.
	allocations := netMallocs("", goal{})
	allocations.loose = true
	return []line{
		{
			name:    "C3 updates, " + string(sides.StoreAndHandler),
			figures: []figure{netCPU("", less(1.7)), allocations, callsPerEvent()},
			task:    task,
			passes:  s.passes,
			first:   true,
		},
		s.singles("C3 single events, ", sides.StoreAndHandler, 0.95),
	}
}
