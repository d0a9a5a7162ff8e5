package mutants

// resyncFaults: missed resyncs and lost changes of relists (B20, B21).
var resyncFaults = []Mutant{
	{
		Name:   "resets-the-resync-timer-only-after-a-resync",
		Guards: []string{"B20"},
		In:     "listener.beginResync",
		From:   "l.timer.Reset(l.resync)",
		To: `
			if !l.HasSynced() {
				return
			}
			l.timer.Reset(l.resync)`,
		Package: guarantees,
		Test:    "TestB20NoHandlerIsResyncedBeforeItHasSynced",
		Fault:   "A handler whose first resync was due during the first list is never resynced.",
	},
	{
		Name:    "skips-resyncs-while-changes-are-pending",
		Guards:  []string{"B20"},
		In:      "listener.tryResync",
		From:    "l.cursor.Status().Changes > resyncBacklog",
		To:      "l.cursor.Status().Changes > 0*resyncBacklog",
		Package: guarantees,
		Test:    "TestB20ASlowHandlersResyncsDoNotPileUp",
		Fault:   "A handler that always has a backlog is never resynced.",
	},
	{
		Name:    "resyncs-objects-with-pending-changes",
		Guards:  []string{"B20"},
		In:      "listener.tryResync",
		From:    "l.cursor.Keys()",
		To:      "nil",
		Package: guarantees,
		Test:    "TestB20ASlowHandlersResyncsDoNotPileUp",
		Fault:   "A handler with a backlog processes each changed object twice.",
	},
	{
		Name:    "delivers-a-relists-changes-as-a-resync",
		Guards:  []string{"B21"},
		In:      "queueReplacement.stageObject",
		From:    "kind: queue.listedType",
		To:      "kind: Sync",
		Package: guarantees,
		Test:    "TestB21ChangesOfARelistAreNotDeliveredAsAResync",
		Fault:   "A consumer that ignores resyncs misses what changed while the watch was down.",
	},
	{
		Name:   "transforms-resynced-objects-again",
		Guards: []string{"B21", "G14"},
		In:     "DeltaFIFO.resyncLocked",
		From:   "last := f.lastLocked(key)",
		To: `
			last := f.lastLocked(key)
			if last.queued == nil && f.transformer != nil {
				last.object, _ = f.transformer(last.object)
			}`,
		Package: guarantees,
		Test:    "TestResyncRepeatsKnownObjectsThatAreNotQueued",
		Fault:   "A transform that is not idempotent corrupts an object at each resync.",
	},
}
