package main

import (
	"time"

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
	goalOrderedMiB     = 8
	goalCoalescedMiB   = 1
	// goalDrainedMiB is "released": some objects' worth.
	goalDrainedMiB  = 1
	goalRelistCalls = 0
)

// lateWindow is how long is looked on when a handler has been added: several times as long
// as either side takes to tell it of everything.
const lateWindow = 2 * time.Second

// informerLines are the workloads that need no server.
func (s scale) informerLines() []line {
	forms := []sides.Form{sides.TypedInformer, sides.SharedInformer}
	var all []line
	for _, form := range forms {
		all = append(all, s.idle("G idle informer, ", form))
	}
	for _, form := range forms {
		all = append(all,
			s.stalled("B18 stalled handler, ordered, ", form, sides.Ordered, goalOrderedMiB),
			s.stalled("B18 stalled handler, coalesced, ", form, sides.Coalesced, goalCoalescedMiB))
	}
	for _, form := range forms {
		all = append(all, relist("B8 relist of what has not changed, ", form))
	}
	return append(all, s.late("-- late handler"), s.behind("-- handler falls behind"))
}

func (s scale) idle(name string, form sides.Form) line {
	return line{
		name:    name + string(form),
		figures: []figure{goroutines(goalIdleGoroutines), heapAndStack(goalIdleKiB), stackAlone()},
		task:    informerTask(client.Idle, form, idleInformers),
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

func relist(name string, form sides.Form) line {
	return line{
		name:    name + string(form),
		figures: []figure{calls(goalRelistCalls)},
		task:    informerTask(client.Relist, form, informerObjects),
		passes:  1,
	}
}

func (s scale) late(name string) line {
	task := informerTask(client.Late, sides.TypedInformer, informerObjects)
	task.Window = lateWindow
	return line{
		name: name,
		figures: []figure{slowest("to the store", storeDelay), slowest("to another handler", handlerDelay),
			slowest("to read", readDelay), joined()},
		task:   task,
		passes: s.latePasses,
		long:   true,
	}
}

func (s scale) behind(name string) line {
	return line{
		name: name,
		figures: []figure{slowest("to another handler, before", beforeDelay),
			slowest("to another handler, merging", handlerDelay), callsCounted()},
		task:   informerTask(client.Behind, sides.TypedInformer, informerObjects),
		passes: s.behindPasses,
		long:   true,
	}
}

func informerTask(work client.Work, form sides.Form, items int) client.Task {
	return client.Task{Work: work, Form: form, Items: items, GCPercent: defaultGC, Timeout: timeout}
}
