package main

import (
	"fmt"

	"github.com/watchmirror/cache/benchmarks/client"
	"github.com/watchmirror/cache/benchmarks/local"
	"github.com/watchmirror/cache/benchmarks/sides"
)

// The goals of stores; times are client-go's over ours.
const (
	goalUpdate   = 1
	goalGet      = 1.3
	goalGetBusy  = 3
	goalList     = 1.3
	goalIterate  = 1.5
	goalWriter   = 100
	goalReplace  = 3
	goalStallUS  = 1000
	goalListKeys = 0.5
	// goalKeptBytes is for keys that are kept as text.
	goalKeptBytes = 1
)

var (
	// storeIndexes are how many indexes are compared.
	storeIndexes = []int{0, 1, 3}
	// goalByIndex is by how many objects are found.
	goalByIndex = map[int]float64{10: 1.5, 1000: 3, 10_000: 3}
	// goalBytes is by how many indexes there are, for keys that are derived.
	goalBytes = map[int]float64{0: 62, 1: 75, 3: 110}
)

// storeForms are the forms of ours that can be read.
var storeForms = []sides.Form{sides.SharedInformer, sides.TypedInformer}

// storeName is what the stores of a form are called.
func storeName(form sides.Form) string {
	if form == sides.SharedInformer {
		return "Indexer"
	}
	return string(form)
}

// storeLine is a workload on a store with all indexes.
func (s scale) storeLine(name string, work client.Work, form sides.Form, count int, figures ...figure) line {
	task := smallTask(work, form, s.objects, count)
	task.Indexes = len(local.Indexes)
	return line{name: name + ", " + storeName(form), figures: figures, task: task, passes: s.passes, floor: true}
}

func (s scale) storeLines() []line {
	all := append(s.updateStoreLines(), s.readLines()...)
	writer := s.storeLine("D5 Update beside a List", client.StoreWriter, sides.SharedInformer, s.waits,
		delay("p99", p99Delay, less(goalWriter)), delay("p50", medianDelay, goal{}))
	writer.task.Busy, writer.task.Indexes, writer.floor = true, 1, false
	replace := s.storeLine("D6 Replace, 3 indexes", client.StoreReplace, sides.SharedInformer, s.replaces,
		microseconds("call", less(goalReplace)), s.replaceBytes())
	stalled := s.storeLine("D6 Get beside a Replace", client.StoreReplace, sides.SharedInformer, s.replaces,
		delay("longest", longestDelay, upTo(goalStallUS)))
	stalled.task.Busy, stalled.floor = true, false
	all = append(all, writer, replace, stalled)
	for _, keys := range []sides.Keys{sides.DerivedKeys, sides.KeptKeys} {
		name := "D7 ListKeys, derived keys"
		if keys == sides.KeptKeys {
			name = "D7 ListKeys, kept keys"
		}
		line := s.storeLine(name, client.StoreKeys, sides.SharedInformer, s.reads, microseconds("call", less(goalListKeys)), mallocsOfAll())
		line.task.Keys, line.task.Indexes = keys, 0
		all = append(all, line)
	}
	return append(all, s.sizeLines()...)
}

// replaceBytes is what a Replace allocates, by object.
func (s scale) replaceBytes() figure {
	f := bytesAllocated("object")
	f.of = func(r client.Result) float64 { return perItem(r, float64(r.Bytes)/float64(s.objects)) }
	return f
}

func (s scale) updateStoreLines() []line {
	var all []line
	for _, indexes := range storeIndexes {
		line := s.storeLine("D1 Update, "+indexed(indexes), client.StoreUpdate, sides.SharedInformer, s.operations,
			nanoseconds("call", less(goalUpdate)), mallocs("call", goal{}))
		line.task.Indexes = indexes
		all = append(all, line)
	}
	return all
}

func (s scale) readLines() []line {
	var all []line
	for _, form := range storeForms {
		line := s.storeLine("D2 Get", client.StoreGet, form, 2*s.operations,
			nanoseconds("call", less(goalGet)), mallocs("call", goal{}))
		line.task.Indexes = 1
		all = append(all, line)
	}
	busy := s.storeLine("D2 Get beside a writer", client.StoreGet, sides.SharedInformer, 2*s.operations,
		delayOfCall("p99", p99Delay, less(goalGetBusy)))
	busy.task.Busy, busy.task.Indexes, busy.floor = true, 1, false
	all = append(all, busy)
	for _, index := range []int{2, 0, 1} { // by owner, namespace, tier: few, more, many
		each := local.Indexes[index].Each
		// About as many objects are found, however many at once.
		count := max(s.reads, s.operations*5/each)
		for _, form := range storeForms {
			line := s.storeLine(fmt.Sprintf("D3 ByIndex of %d", each), client.StoreByIndex, form, count,
				microseconds("call", less(goalByIndex[each])), mallocs("call", goal{}))
			line.task.Index = index
			// Values of as many objects, whatever the scale.
			line.task.Items = max(s.objects, 2*each)
			all = append(all, line)
		}
	}
	for _, form := range storeForms {
		line := s.storeLine("D4 List", client.StoreList, form, s.reads, microseconds("call", less(goalList)), mallocsOfAll())
		line.task.Indexes = 1
		all = append(all, line)
	}
	for _, form := range storeForms {
		none := mallocsOfAll()
		none.goal, none.slack = upTo(0), 0.5
		line := s.storeLine("D4 iterate", client.StoreIterate, form, s.reads, microseconds("call", less(goalIterate)), none)
		line.task.Indexes = 1
		all = append(all, line)
	}
	return all
}

func (s scale) sizeLines() []line {
	var all []line
	for _, objects := range s.sizes {
		for _, keys := range []sides.Keys{sides.DerivedKeys, sides.KeptKeys} {
			name := "derived keys"
			if keys == sides.KeptKeys {
				name = "kept keys"
			}
			for _, indexes := range storeIndexes {
				goal := upTo(goalBytes[indexes])
				if keys == sides.KeptKeys {
					goal = less(goalKeptBytes)
				}
				task := smallTask(client.StoreSize, sides.SharedInformer, objects, 0)
				task.Indexes, task.Keys = indexes, keys
				all = append(all, line{
					name:    fmt.Sprintf("E store of %d, %s, %s", objects, indexed(indexes), name),
					figures: []figure{storeBytes(goal), grownBytes(goal)},
					task:    task,
					passes:  1,
					floor:   true,
				})
			}
		}
	}
	return all
}
