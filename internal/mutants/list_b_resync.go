package mutants

// resyncFaults: missed resyncs and lost changes of relists (B20, B21).
var resyncFaults = []Mutant{
	{
		Name:    "resets-the-resync-timer-only-after-a-resync",
		Guards:  []string{"B20"},
		File:    "handlers.go",
		From:    "	l.timer.Reset(l.resync)\n	l.due =",
		To:      "	if !l.HasSynced() {\n		return\n	}\n	l.timer.Reset(l.resync)\n	l.due =",
		Package: guarantees,
		Test:    "TestB20NoHandlerIsResyncedBeforeItHasSynced",
		Fault:   "A handler whose first resync was due during the first list is never resynced.",
	},
	{
		Name:    "skips-resyncs-while-changes-are-pending",
		Guards:  []string{"B20"},
		File:    "handlers.go",
		From:    "> resyncBacklog;",
		To:      "> 0*resyncBacklog;",
		Package: guarantees,
		Test:    "TestB20ASlowHandlersResyncsDoNotPileUp",
		Fault:   "A handler that always has a backlog is never resynced.",
	},
	{
		Name:    "resyncs-objects-with-pending-changes",
		Guards:  []string{"B20"},
		File:    "handlers.go",
		From:    "l.snapshot(eventlog.Update, l.cursor.Keys())",
		To:      "l.snapshot(eventlog.Update, nil)",
		Package: guarantees,
		Test:    "TestB20ASlowHandlersResyncsDoNotPileUp",
		Fault:   "A handler with a backlog processes each changed object twice.",
	},
	{
		Name:    "delivers-a-relists-changes-as-a-resync",
		Guards:  []string{"B21"},
		File:    "delta_fifo.go",
		From:    "{{kind: f.listedType, object: obj}}",
		To:      "{{kind: Sync, object: obj}}",
		Package: guarantees,
		Test:    "TestB21ChangesOfARelistAreNotDeliveredAsAResync",
		Fault:   "A consumer that ignores resyncs misses what changed while the watch was down.",
	},
	{
		Name: "transforms-resynced-objects-again", Guards: []string{"B21", "G14"}, File: "delta_fifo.go",
		From:    "\t\tcase last.present: // not if",
		To:      "\t\tcase last.present && f.transformer != nil:\n\t\t\tobj, _ := f.transformer(last.object)\n\t\t\tf.log.add(record{kind: recordSync, object: obj, key: key, origin: last.origin})\n\t\tcase last.present: // not if",
		Package: guarantees,
		Test:    "TestResyncRepeatsKnownObjectsThatAreNotQueued",
		Fault:   "A transform that is not idempotent corrupts an object at each resync.",
	},
}
