package main

import (
	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// How much is measured of informers, at any scale: that is cheap, and what a goal says is
// said for that.
const (
	idleInformers   = 1000
	stalledUpdates  = 500_000
	informerObjects = 100_000
)

// The goals for informers and their handlers.
const (
	goalIdleGoroutines = 3  // the caller of Run included
	goalIdleKiB        = 36 // heap and stacks
	goalOrderedMiB     = 4
	goalCoalescedMiB   = 1
	// goalDrainedMiB is "given back": some objects' worth.
	goalDrainedMiB  = 1
	goalRelistCalls = 0
)

// informerLines are the workloads that need no server.
func (s scale) informerLines() []line {
	return []line{
		s.idle("G idle informer, ", sides.TypedInformer),
		s.idle("G idle informer, ", sides.SharedInformer),
		s.stalled("B18 stalled handler, ordered", sides.Ordered, goalOrderedMiB),
		s.stalled("B18 stalled handler, coalesced", sides.Coalesced, goalCoalescedMiB),
		{
			name:    "B8 relist of what has not changed",
			figures: []figure{calls(goalRelistCalls)},
			task:    informerTask(client.Relist, sides.TypedInformer, informerObjects),
			passes:  1,
		},
		{
			name:    "-- late handler",
			figures: []figure{slowest("to the store", storeDelay), slowest("to another handler", handlerDelay), slowest("to read", readDelay)},
			task:    informerTask(client.Late, sides.TypedInformer, informerObjects),
			passes:  s.latePasses,
		},
	}
}

func (s scale) idle(name string, form sides.Form) line {
	return line{
		name:    name + string(form),
		figures: []figure{goroutines(goalIdleGoroutines), heapAndStack(goalIdleKiB), stackAlone()},
		task:    informerTask(client.Idle, form, idleInformers),
		passes:  s.idlePasses,
	}
}

func (s scale) stalled(name string, delivery sides.Delivery, most float64) line {
	task := informerTask(client.Stalled, sides.TypedInformer, stalledUpdates)
	task.Delivery = delivery
	return line{
		name:       name,
		figures:    []figure{heapGrowth(most), drainedGrowth(goalDrainedMiB)},
		task:       task,
		theirItems: s.theirUpdates,
		passes:     1,
	}
}

func informerTask(work client.Work, form sides.Form, items int) client.Task {
	return client.Task{Work: work, Form: form, Items: items, GCPercent: defaultGC, Timeout: timeout}
}
