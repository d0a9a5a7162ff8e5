package main

import (
	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// How much is measured of informers, at any scale: that is cheap, and what a goal says is
// said for that.
const (
	idleInformers  = 1000
	stalledUpdates = 500_000
)

// The goals for informers and their handlers.
const (
	goalIdleGoroutines = 3  // the caller of Run included
	goalIdleKiB        = 36 // heap and stacks
	goalIdleCPU        = 150
	goalOrderedMiB     = 8
	goalCoalescedMiB   = 1
	// goalDrainedMiB is "released": some objects' worth.
	goalDrainedMiB = 1
)

// informerLines are the workloads that need no server.
func (s scale) informerLines() []line {
	forms := []sides.Form{sides.TypedInformer, sides.SharedInformer}
	var all []line
	for _, form := range forms {
		all = append(all, s.idle("G idle informer, ", form), s.idleCPU("G 1,000 idle informers, ", form))
	}
	for _, form := range forms {
		all = append(all,
			s.stalled("B18 stalled handler, ordered, ", form, sides.Ordered, goalOrderedMiB),
			s.stalled("B18 stalled handler, coalesced, ", form, sides.Coalesced, goalCoalescedMiB))
	}
	return all
}

func (s scale) idle(name string, form sides.Form) line {
	return line{
		name:    name + string(form),
		figures: []figure{goroutines(goalIdleGoroutines), heapAndStack(goalIdleKiB), stackAlone()},
		task:    informerTask(client.Idle, form, idleInformers),
		passes:  s.idlePasses,
	}
}

func (s scale) idleCPU(name string, form sides.Form) line {
	return line{
		name:    name + string(form),
		figures: []figure{idleCPU(goalIdleCPU)},
		task:    informerTask(client.IdleCPU, form, idleInformers),
		passes:  s.idlePasses,
	}
}

func (s scale) stalled(name string, form sides.Form, delivery sides.Delivery, most float64) line {
	task := informerTask(client.Stalled, form, stalledUpdates)
	task.Delivery = delivery
	return line{
		name:       name + string(form),
		figures:    []figure{heapGrowth(most), drainedGrowth(goalDrainedMiB)},
		task:       task,
		theirItems: s.theirUpdates,
		passes:     1,
	}
}

func informerTask(work client.Work, form sides.Form, items int) client.Task {
	return client.Task{Work: work, Form: form, Items: items, GCPercent: defaultGC, Timeout: timeout}
}
