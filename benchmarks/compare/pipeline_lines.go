package main

import (
	"fmt"

	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// The goals of what happens between source and handlers.
const (
	goalFirstListMallocs = 1.2
	goalFirstListCPU     = 2.5
	goalQueueNanoseconds = 110
	goalQueueMallocs     = 1 // for the text of a key
	goalPopTimes         = 3
	goalSingleOfFloor    = 1.6
	goalBurstMedian      = 5
	goalBurstP99         = 12
	goalPendingBytes     = 32
)

// updateGoals are those of updates, by how many handlers there are.
var updateGoals = []struct {
	handlers        int
	cpu, throughput float64
}{{1, 5, 3}, {5, 8, 5}}

// What updates allocate at most, for any number of handlers.
const (
	goalTypedMallocs   = 0.02
	goalTypedBytes     = 32
	goalUntypedMallocs = 1.1
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
			floor:   true,
		})
	}
	for _, form := range informerForms {
		task := smallTask(client.ChangedList, form, s.objects, 0)
		task.GCPercent, task.StopTheWorld = syncGC, true
		vain := calls(0)
		vain.name = "calls for what is the same"
		all = append(all, line{
			name:    "A6 relist, 1 % changed, " + string(form),
			figures: []figure{peakOverSteady(goalPeak, true), vain},
			task:    task,
			passes:  1,
			floor:   true,
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
			mallocs, bytes := upTo(goalTypedMallocs), upTo(goalTypedBytes)
			if form == sides.SharedInformer {
				mallocs, bytes = upTo(goalUntypedMallocs), goal{}
			}
			all = append(all, line{
				name: fmt.Sprintf("B1-B3 updates, %s, %s", counted(goals.handlers, "handler"), form),
				figures: []figure{netCPU(less(goals.cpu)), throughput(goal{timesMore, goals.throughput}),
					netMallocs(mallocs), netBytes(bytes), callsPerEvent()},
				task:   task,
				passes: s.passes,
				floor:  true,
			})
		}
	}
	return all
}

// queueDepth is how many changes a queue holds.
const queueDepth = 1000

func (s scale) queueLines() []line {
	var all []line
	for _, out := range []sides.Out{sides.InBatches, sides.Singly} {
		task := smallTask(client.Queued, "", queueDepth, s.operations)
		task.Out = out
		figures := []figure{nanoseconds("item", less(goalPopTimes)), mallocs("item", goal{})}
		name := "C queue, 1,000 deep, Pop"
		if out == sides.InBatches {
			figures = []figure{nanoseconds("item", upTo(goalQueueNanoseconds)), mallocs("item", upTo(goalQueueMallocs))}
			name = "C queue, 1,000 deep, PopBatch"
		}
		all = append(all, line{name: name, figures: figures, task: task, passes: s.passes, floor: true})
	}
	return all
}

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
			figures: []figure{delay("to the handler, p50", medianDelay, goal{timesFloor, goalSingleOfFloor}),
				delay("to the handler, p99", p99Delay, goal{})},
			task:   task,
			passes: s.passes,
			floor:  true,
		})
	}
	for _, form := range informerForms {
		task := smallTask(client.Delays, form, delayObjects, s.waits/4)
		task.Handlers, task.Burst = burstHandlers, burst
		all = append(all, line{
			name: fmt.Sprintf("F2 bursts of %d, %d handlers, %s", burst, burstHandlers, form),
			figures: []figure{delay("to a handler, p50", medianDelay, less(goalBurstMedian)),
				delay("to a handler, p99", p99Delay, less(goalBurstP99))},
			task:   task,
			passes: s.passes,
			floor:  true,
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
