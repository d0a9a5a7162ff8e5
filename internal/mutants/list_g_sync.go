package mutants

// Synced, deletions by relists, and the backlog of a slow handler: G5, G7, G8.
var syncMutants = []Mutant{
	{
		Name:   "treats-the-first-part-as-the-whole-list",
		Guards: []string{"G5"},
		In:     "queueReplacement.Add",
		From:   "return rejected, ctx.Err()",
		To: `
			r.queue.mu.Lock()
			r.queue.populated = true
			r.queue.unlock()
			return rejected, ctx.Err()`,
		Package: guarantees,
		Test:    "TestG5SyncedIsWhenTheFirstListHasBeenProcessed",
		Fault:   "A controller starts with the first 500 of 50,000 objects.",
	},
	{
		Name:   "treats-an-informers-first-part-as-the-whole-list",
		Guards: []string{"G5"},
		In:     "storeReplacement.Add",
		From:   "r.refused = nil",
		To: `
			r.refused = nil
			r.in.publisher.listed()`,
		Package: guarantees,
		Test:    "TestG5NoHandlerHasSyncedInTheMiddleOfTheFirstList",
		Fault: "A controller starts with a part of the objects, and deletes the dependents " +
			"of the others.",
	},
	{
		Name:    "counts-queued-objects-as-synced",
		Guards:  []string{"G5"},
		In:      "DeltaFIFO.unlock",
		From:    "f.log.InitialProcessed()",
		To:      "true",
		Package: guarantees,
		Test:    "TestG5SyncedIsWhenTheFirstListHasBeenProcessed",
		Fault:   "HasSynced is true while the store is still empty.",
	},
	{
		Name:    "ends-a-first-list-with-any-event",
		Guards:  []string{"G5"},
		In:      "DeltaFIFO.putChange",
		From:    "f.openLists == 0",
		To:      "true",
		Package: guarantees,
		Test:    "TestG5AnEventDoesNotEndAFirstListThatHasBegun",
		Fault: "An event during a first list makes synced true too early, and the rest of " +
			"the list look like new objects.",
	},
	{
		Name:   "syncs-a-handler-once-its-list-is-queued",
		Guards: []string{"G5"},
		In:     "feed.markSynced",
		From:   "f.informer.log.AppendEnd(storage.table.Len(), storage.logged.Load())",
		To: `
			f.informer.log.AppendEnd(storage.table.Len(), storage.logged.Load())
			for _, l := range f.informer.listeners {
				l.synced.finish(nil)
			}`,
		Package: guarantees,
		Test:    "TestG5AHandlerHasSyncedOnceItHasHandledTheInitialList",
		Fault:   "A handler counts as synced before its first call.",
	},
	{
		Name:    "syncs-a-handler-that-joins-during-the-first-list",
		Guards:  []string{"G5"},
		Dir:     "internal/eventlog",
		In:      "Cursor.Join",
		From:    "c.log.ended",
		To:      "c.log.ended || s.Len > 0",
		Package: guarantees,
		Test:    "TestG5NoHandlerHasSyncedInTheMiddleOfTheFirstList",
		Fault:   "A handler that is added during the first list has synced after half of it.",
	},
	{
		Name:    "keeps-absent-objects-that-are-being-processed",
		Guards:  []string{"G7"},
		Dir:     "internal/deltalog",
		In:      "Log.KeysBefore",
		From:    "r.isChange()",
		To:      "r.isChange() && !r.handedOut",
		Package: guarantees,
		Test:    "TestG7ARelistDeletesAbsentObjectsThatAreStoredQueuedOrBeingProcessed",
		Fault: "An object that is deleted in a relist while it is being processed stays in " +
			"the cache forever.",
	},
	{
		Name:    "keeps-absent-objects-that-are-queued",
		Guards:  []string{"G7"},
		Dir:     "internal/deltalog",
		In:      "Log.KeysBefore",
		From:    "r.isChange()",
		To:      "r.isChange() && r.handedOut",
		Package: guarantees,
		Test:    "TestG7ARelistDeletesAbsentObjectsThatAreStoredQueuedOrBeingProcessed",
		Fault: "An object that is deleted in a relist while it is only queued stays in the " +
			"cache forever.",
	},
	{
		Name:    "deletes-other-namespaces-objects-at-a-relist",
		Guards:  []string{"G7"},
		In:      "storeReplacement.publish",
		From:    "scope.hasKey(key) && !r.retains(key)",
		To:      "!r.retains(key)",
		Package: guarantees,
		Test:    "TestG7AReplacementOnAViewConcernsItsNamespace",
		Fault:   "The relist of one namespace empties all others.",
	},
	{
		Name:    "delivers-a-first-lists-writes-late",
		Guards:  []string{"G3"},
		In:      "storeReplacement.publishPart",
		From:    "feed: r.in.publisher",
		To:      "feed: nil",
		Package: guarantees,
		Test:    "TestG3AHandlerThatJoinsInTheMiddleOfAFirstListReceivesAllOfIt",
		Fault:   "A handler that joins in the middle of the first list never receives some objects.",
	},
	{
		Name:   "skips-a-state-that-a-relist-reverts",
		Guards: []string{"G7"},
		In:     "storeReplacement.compareWithStore",
		From:   "!c.prepared.deletes && !again",
		To:     "!c.prepared.deletes && (!again || true)",
		Test:   "TestTheNewestListedStateCountsIfTheObjectWasRecreatedMeanwhile",
		Fault:  "If a relist has two states of an object, the cache may go back to the earlier one.",
	},
	{
		Name:   "reuses-entry-numbers-during-a-relist",
		Guards: []string{"G7"},
		Dir:    "internal/table",
		In:     "Table.pack",
		From:   "marks[i].set(to, l.marks.get(from))",
		To: `
			_ = to
			marks[i].set(from, l.marks.get(from))`,
		Package: guarantees,
		Test:    "TestG7WritesOfOthersDuringAListDoNotCountAsListed",
		Fault: "If the program removes an object from the store during a relist, another " +
			"deleted one may stay forever.",
	},
	{
		Name:    "treats-a-new-object-in-a-listed-entry-as-listed",
		Guards:  []string{"G7"},
		Dir:     "internal/table",
		In:      "Listing.entryAdded",
		From:    "l.marks.set(number, added)",
		To:      "l.marks.set(number, confirmed)",
		Package: guarantees,
		Test:    "TestG7WritesOfOthersDuringAListDoNotCountAsListed",
		Fault: "If the program removes an object from the store and adds one during a " +
			"relist, the added one may stay forever.",
	},
	{
		Name:   "keeps-objects-stored-before-the-first-list",
		Guards: []string{"G7"},
		In:     "storeReplacement.publish",
		From:   "replaced(key)",
		To:     "!r.isVisible && replaced(key)",
		Test:   "TestAFirstListShowsPartByPart",
		Fault:  "An object that was stored before the first list, and is not in it, stays forever.",
	},
	{
		Name:    "never-merges",
		Guards:  []string{"G8"},
		Dir:     "internal/eventlog",
		In:      "Cursor.appended",
		From:    "max(1024, 2*live)",
		To:      "max(1<<40, 2*live)",
		Package: guarantees,
		Test:    "TestG8AHandlerThatHangsIsNotifiedAtMostTwiceOfEachKey",
		Fault:   "A handler that hangs uses unbounded memory.",
	},
	{
		Name:    "merges-for-an-unbounded-handler",
		Guards:  []string{"G8"},
		In:      "HandlerOptions.withDefaults",
		From:    "cmp.Or(o.Delivery, defaults.Delivery)",
		To:      "cmp.Or(min(o.Delivery, Coalesced), defaults.Delivery)",
		Package: guarantees,
		Test:    "TestG8AnUnboundedHandlerReceivesEverythingAfterItHung",
		Fault:   "A handler that asked for every state misses most of them.",
	},
	{
		Name:   "clears-pending-notifications-of-a-slow-handler",
		Guards: []string{"G8", "G3"},
		Dir:    "internal/eventlog",
		In:     "Log.isReadLocked",
		From: `
			for _, c := range l.cursors {
				if c.position.Load() != end {
					return false
				}
			}
			return true`,
		To: `
			for _, c := range l.cursors {
				if c.position.Load() == end {
					return true
				}
			}
			return false`,
		Package: "./internal/eventlog",
		Test:    "TestReadersOfALogReadWhatWasWritten",
		Fault: "Pending changes of a handler are removed as soon as a faster one has " +
			"received them.",
	},
	{
		Name:    "never-releases-a-bursts-memory",
		Guards:  []string{"G8"},
		Dir:     "internal/deltalog",
		In:      "Log.releaseProcessed",
		From:    "cap(l.records) > keptCapacity",
		To:      "cap(l.records) < 0",
		Package: "./internal/deltalog",
		Test:    "TestTheMemoryOfABurstIsReleasedAsItDrains",
		Fault:   "The memory of the largest burst is retained until the process ends.",
	},
}
