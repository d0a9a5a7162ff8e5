package mutants

// When something has synced, what a relist takes away, and what may wait for a slow
// handler: G5, G7, G8.
var syncMutants = []Mutant{
	{
		Name: "takes-the-first-part-for-the-whole-list", Guards: []string{"G5"}, File: "delta_fifo_replacement.go",
		From:    "\tf.listing = true\n",
		To:      "\tf.listing, f.populated = true, true\n",
		Package: guarantees,
		Test:    "TestG5SyncedMeansTheWholeFirstListIsApplied",
		Fault:   "A controller begins its work on the first 500 of 50,000 objects.",
	},
	{
		Name: "counts-what-is-queued-as-synced", Guards: []string{"G5"}, File: "delta_fifo_pop.go",
		From:    "return f.log.initial == 0 || f.consumption == notYet",
		To:      "return f.log.initial >= 0 || f.consumption == notYet",
		Package: guarantees,
		Test:    "TestG5SyncedIsWhenTheFirstListHasBeenProcessed",
		Fault:   "HasSynced is true while the store is still empty.",
	},
	{
		Name: "ends-a-first-list-with-any-event", Guards: []string{"G5"}, File: "delta_fifo.go",
		From:    "f.populated = f.populated || !f.listing",
		To:      "f.populated = true",
		Package: guarantees,
		Test:    "TestG5AnEventDoesNotEndAFirstListThatHasBegun",
		Fault:   "An event in the middle of a first list makes the rest of the list look like news, and synced come early.",
	},
	{
		Name: "syncs-a-handler-by-what-is-queued-for-it", Guards: []string{"G5"}, File: "informer_run.go",
		From: "\tinf.append([]notification{{kind: endOfList}}, 0)\n",
		To: `	inf.append([]notification{{kind: endOfList}}, 0)
	for _, l := range inf.currentListeners() {
		l.synced.succeed()
	}
`,
		Package: guarantees,
		Test:    "TestG5AHandlerHasSyncedOnceItHasHandledTheInitialList",
		Fault:   "A handler's work queue is taken for complete before the handler has run once.",
	},
	{
		Name: "ends-the-initial-list-of-whoever-joins-in-its-middle", Guards: []string{"G5"}, File: "listener_snapshot.go",
		From:    "ends: log.ended,",
		To:      "ends: log.ended || s.Len() > 0,",
		Package: guarantees,
		Test:    "TestG5NoHandlerHasSyncedInTheMiddleOfTheFirstList",
		Fault:   "A handler that is added while the first list is read has synced with half of it.",
	},
	{
		Name: "looks-for-the-absent-in-the-store-and-the-queue-alone", Guards: []string{"G7"}, File: "delta_fifo_absent.go",
		From:    "f.log.keysOut()...)",
		To:      "f.log.keysOut()[:0]...)",
		Package: guarantees,
		Test:    "TestG7ARelistDeletesWhatItLacksWhereverItIs",
		Fault:   "An object that is being processed when the relist comes stays in the cache for ever.",
	},
	{
		Name: "looks-for-the-absent-with-the-consumer-alone", Guards: []string{"G7"}, File: "delta_fifo_absent.go",
		From:    "append(f.log.pendingKeys(), ",
		To:      "append(f.log.pendingKeys()[:0], ",
		Package: guarantees,
		Test:    "TestG7WhatARelistLacksGoesAlsoIfItWasOnlyQueued",
		Fault:   "An object that was only queued when the relist came stays in the cache for ever.",
	},
	{
		Name: "deletes-other-namespaces-objects-at-a-relist", Guards: []string{"G7"}, File: "store_replacement.go",
		From:    "return listed(number, key) || !scope.hasKey(key) })",
		To:      "return listed(number, key) })",
		Package: guarantees,
		Test:    "TestG7AReplacementOnAViewConcernsItsNamespace",
		Fault:   "The relist of one namespace empties all others.",
	},
	{
		Name: "tells-of-a-first-lists-writes-later-than-it-makes-them", Guards: []string{"G3"}, File: "informer_first_list.go",
		From:  "\tl.publish(l.store.storage.writes)\n",
		To:    "\tif len(l.notifications) >= 2*directly {\n\t\tl.publish(l.store.storage.writes)\n\t}\n",
		Test:  "TestAHandlerThatJoinsInAPartOfAFirstListHearsOfAllOfIt",
		Fault: "A handler that joins in the middle of the first list never hears of some objects.",
	},
	{
		Name: "leaves-out-of-a-relist-what-changes-back-within-it", Guards: []string{"G7"}, File: "informer_relist.go",
		From:  " || l.passed.has(found.Number)",
		To:    "",
		Test:  "TestARelistPastTheQueueDoesWhatOneThroughItDoes",
		Fault: "Of two states that one relist brings of an object, the cache is left with the earlier.",
	},
	{
		Name: "takes-a-relists-numbers-for-those-of-other-objects", Guards: []string{"G7"}, File: "staged.go",
		From:  "				m.beforeRenumbering()\n",
		To:    "",
		Test:  "TestARelistPastTheQueueDoesWhatOneThroughItDoes",
		Fault: "If somebody removes an object from the store during a relist, another one that is gone may stay for ever.",
	},
	{
		Name: "takes-a-first-list-for-all-that-there-is", Guards: []string{"G7"}, File: "informer_first_list.go",
		From:  "return l.listed.added == there && l.listed",
		To:    "return there >= 0 && l.listed",
		Test:  "TestAFirstListPastTheQueueDoesWhatOneThroughItDoes",
		Fault: "What somebody has put into the store before the first list stays for ever.",
	},
	{
		Name: "never-begins-to-merge", Guards: []string{"G8"}, File: "backlog.go",
		From:    "b.delivery == Ordered && ahead+b.len() <= mergeLimit(live)",
		To:      "b.delivery == Ordered",
		Package: guarantees,
		Test:    "TestG8AHandlerThatHangsIsToldAtMostTwiceOfEachKey",
		Fault:   "A handler that hangs costs memory without bound.",
	},
	{
		Name: "merges-for-whoever-asked-for-everything", Guards: []string{"G8"}, File: "handler_options.go",
		From:    "\tsetIf(&defaults.Delivery, o.Delivery)\n",
		To:      "\tsetIf(&defaults.Delivery, min(o.Delivery, Coalesced))\n",
		Package: guarantees,
		Test:    "TestG8AnUnboundedHandlerIsToldEverythingAfterItHung",
		Fault:   "A handler that is to see every state misses most of them.",
	},
	{
		Name: "clears-what-a-slow-handler-is-yet-to-be-told", Guards: []string{"G8", "G3"}, File: "event_log.go",
		From:    "\t\tif !l.hasRead(e.end.Load()) {\n\t\t\treturn\n\t\t}\n",
		To:      "\t\tif l.hasRead(e.end.Load()) {\n\t\t\tbreak\n\t\t}\n",
		Package: guarantees,
		Test:    "TestG3AnOrderedHandlerIsToldEverythingInTheSourcesOrder",
		Fault:   "What a handler has not been told yet is gone as soon as a faster one has been told of it.",
	},
	{
		Name: "never-gives-a-bursts-memory-back", Guards: []string{"G8"}, File: "delta_log.go",
		From:  "case cap(l.records) > keptCapacity && cap(l.records) >= 4*left:",
		To:    "case cap(l.records) > keptCapacity && cap(l.records) >= 4*left && left < 0:",
		Test:  "TestABurstIsGivenBackAsItDrains",
		Fault: "The memory of the worst minute of the year is kept until the process ends.",
	},
}
