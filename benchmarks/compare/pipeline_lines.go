package main

import (
	"fmt"

	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// The goals of what happens between source and handlers.
const (
	goalFirstListMallocs = 3
	goalFirstListCPU     = 2
	goalPacedCPU         = 1.05
	goalControllerCPU    = 1.7
	goalControllerSingle = 0.95
	goalSingle           = 1.05
	goalBurst            = 2.3
	goalBurstP99         = 2
	goalPendingBytes     = 100
	goalRecoverySeconds  = 1
)

// updateGoals are those of updates, by how many handlers there are.
var updateGoals = []struct {
	handlers        int
	cpu, throughput float64
}{{1, 3, 2.2}, {5, 4.5, 3.5}}

// What updates allocate at most, for any number of handlers, and what the program's own
// index function, which the untyped form has, allocates besides.
const (
	goalUpdateMallocs    = 2
	indexFunctionMallocs = 1
)

var informerForms = []sides.Form{sides.TypedInformer, sides.SharedInformer}

func smallTask(work client.Work, form sides.Form, objects, count int) client.Task {
	return client.Task{Work: work, Form: form, Items: objects, Count: count, GCPercent: defaultGC, Timeout: timeout}
}

func (s scale) firstListLines() []line {
	var all []line
	for _, form := range informerForms {
		all = append(all, line{
			name:    "A2 first list, small objects, " + string(form),
			figures: []figure{mallocs("object", upTo(goalFirstListMallocs)), cpu("object", less(goalFirstListCPU))},
			task:    smallTask(client.FirstList, form, s.objects, 0),
			passes:  s.passes,
		})
	}
	for _, form := range informerForms {
		task := smallTask(client.ChangedList, form, s.objects, 0)
		task.GCPercent, task.StopTheWorld = syncGC, true
		vain := handlerCalls(0)
		vain.name = "calls for unchanged objects"
		all = append(all, line{
			name:    "A6 relist, 1 % changed, " + string(form),
			figures: []figure{peakOverSteady(goalPeak, true), vain},
			task:    task,
			passes:  1,
		})
	}
	return all
}

func (s scale) updateLines() []line {
	var all []line
	for _, form := range informerForms {
		for _, goals := range updateGoals {
			task := smallTask(client.Updates, form, s.objects, s.updates)
			task.Handlers = goals.handlers
			mallocs := upTo(goalUpdateMallocs)
			if form == sides.SharedInformer {
				mallocs = upTo(goalUpdateMallocs + indexFunctionMallocs)
			}
			all = append(all, line{
				name: fmt.Sprintf("B1-B3 updates, %s, %s", counted(goals.handlers, "handler"), form),
				figures: []figure{netCPU("B1 ", less(goals.cpu)), throughput(goal{timesMore, goals.throughput}),
					netMallocs("B3 ", mallocs), netBytes(goal{}), callsPerEvent()},
				task:   task,
				passes: s.passes,
			})
		}
	}
	return all
}

func (s scale) pacedLines() []line {
	var all []line
	for _, form := range informerForms {
		task := smallTask(client.Paced, form, delayObjects, s.waits)
		task.Handlers = 1
		all = append(all, line{
			name:    "B4 500 events/s, one at a time, " + string(form),
			figures: []figure{cpu("event", less(goalPacedCPU))},
			task:    task,
			passes:  s.passes,
		})
	}
	return all
}

// controllerLines are those of a controller that needs no queue of the program's.
func (s scale) controllerLines() []line {
	burst := smallTask(client.Updates, sides.StoreAndHandler, s.objects, s.updates)
	burst.Handlers = 1
	// How many there are depends on how large batches get: more than a record bears.
	allocations := netMallocs("", goal{})
	allocations.loose = true
	single := smallTask(client.Delays, sides.StoreAndHandler, delayObjects, s.waits)
	single.Handlers, single.Burst = 1, 1
	return []line{
		{
			name:    "C3 updates, " + string(sides.StoreAndHandler),
			figures: []figure{netCPU("", less(goalControllerCPU)), allocations, callsPerEvent()},
			task:    burst, passes: s.passes, first: true,
		},
		{
			name: "C3 single events, " + string(sides.StoreAndHandler),
			figures: []figure{delay("to the handler, p50", medianDelay, less(goalControllerSingle)),
				delay("to the handler, p99", p99Delay, goal{})},
			task: single, passes: s.passes, first: true,
		},
	}
}

// recoveryLines are those of faults and the time until the cache equals the source again.
func (s scale) recoveryLines() []line {
	var all []line
	for _, fault := range client.Faults {
		task := smallTask(client.Recovery, sides.TypedInformer, recoveryObjects, s.recoveries)
		task.Fault = fault
		all = append(all, line{
			name: "T " + string(fault),
			figures: []figure{recoveryTime("median", medianDelay, goal{moreThanTheirs, goalRecoverySeconds}),
				recoveryTime("slowest", longestDelay, goal{})},
			task:   task,
			passes: 1,
		})
	}
	return all
}

const recoveryObjects = 50

// Pending changes: fewer than twice the objects, from where ours merges them.
func (s scale) pendingChanges() int { return s.objects * 3 / 2 }

const (
	burst         = 100
	burstHandlers = 5
	stuckHandlers = 4
	delayObjects  = 10_000
)

func (s scale) delayLines() []line {
	var all []line
	for _, form := range informerForms {
		task := smallTask(client.Delays, form, delayObjects, s.waits)
		task.Handlers, task.Burst = 1, 1
		all = append(all, line{
			name: "F1 single events, " + string(form),
			figures: []figure{delay("to the handler, p50", medianDelay, less(goalSingle)),
				delay("to the handler, p99", p99Delay, goal{})},
			task:   task,
			passes: s.passes,
			first:  true,
		})
	}
	for _, form := range informerForms {
		task := smallTask(client.Delays, form, delayObjects, s.waits/4)
		task.Handlers, task.Burst = burstHandlers, burst
		all = append(all, line{
			name: fmt.Sprintf("F2 bursts of %d, %d handlers, %s", burst, burstHandlers, form),
			figures: []figure{delay("to a handler, p50", medianDelay, less(goalBurst)),
				delay("to a handler, p99", p99Delay, less(goalBurstP99))},
			task:   task,
			passes: s.passes,
		})
	}
	for _, form := range informerForms {
		task := smallTask(client.Pending, form, s.objects, s.pendingChanges())
		task.Handlers = stuckHandlers + 1 // and one that is not
		all = append(all, line{
			name:    fmt.Sprintf("F3 pending events, %d stuck handlers, %s", stuckHandlers, form),
			figures: []figure{pendingBytes(goalPendingBytes)},
			task:    task,
			passes:  1,
		})
	}
	return all
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
