package mutants

// What readers and handlers see of each key, and in which order: G2, G3, G4.
var orderMutants = []Mutant{
	{
		Name: "forgets-what-an-aborted-first-list-has-shown", Guards: []string{"G2"}, File: "reflector.go",
		From:    "\t\treturn p.shown\n",
		To:      "\t\treturn \"\"\n",
		Package: guarantees,
		Test:    "TestG2AFirstListIsNotFollowedByAnOlderOne",
		Fault:   "After a first list that broke off, a handler is told an older state of an object it has heard of.",
	},
	{
		Name: "repeats-a-stale-state-at-a-resync", Guards: []string{"G2"}, File: "delta_fifo_sync.go",
		From:    "_, busy := f.newestLocked(key); busy {",
		To:      "_, busy := f.newestLocked(key); busy && f.closed {",
		Package: guarantees,
		Test:    "TestB21WhatARelistBringsIsNoResync",
		Fault:   "A resync queues the stored state behind a newer one that is waiting, and the object goes back in time.",
	},
	{
		Name: "compares-versions-as-strings", Guards: []string{"G2"}, File: "received.go",
		From: `	if a == "" || !sortsBefore(a, b) {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
`,
		To: `	_, err := resourceversion.CompareResourceVersion(a, b)
	order := map[bool]int{true: -1}[a < b]
`,
		Package: guarantees,
		Test:    "TestG3AnOrderedHandlerIsToldEverythingInTheSourcesOrder",
		Fault:   "Version 10 is taken for older than version 9.",
	},
	{
		Name: "tells-a-late-handler-its-snapshots-last-write-again", Guards: []string{"G3"}, File: "informer_run.go",
		From:    "\tfor _, l := range listeners {\n\t\tl.skip(write)\n\t}\n",
		To:      "",
		Package: guarantees,
		Test:    "TestG3AHandlerThatJoinsBetweenAWriteAndItsPublicationIsToldOfItOnce",
		Fault:   "A handler that joins while something is written is told of that write twice.",
	},
	{
		Name: "loses-what-is-published-after-a-snapshot", Guards: []string{"G3"}, File: "listener_snapshot.go",
		From:    "\tif s.Writes > log.write {\n\t\tl.skips = s.Writes\n\t}\n",
		To:      "\tl.skips = max(s.Writes, log.write+1)\n",
		Package: guarantees,
		Test:    "TestG3ALateHandlerGoesOnExactlyWhereItsSnapshotEnds",
		Fault:   "A handler that joins never hears of the first write after that.",
	},
	{
		Name: "resyncs-ahead-of-what-was-taken-out-to-be-told", Guards: []string{"G2"}, File: "listener_snapshot.go",
		From:  "if !l.due || l.ahead.waiting() > 0 {",
		To:    "if !l.due {",
		Test:  "TestListenersEqualTheStore",
		Fault: "A resync repeats a new state to a handler that is then told of the changes which led to it.",
	},
	{
		Name: "resyncs-ahead-of-a-write-that-is-still-to-be-told", Guards: []string{"G3"}, File: "listener_snapshot.go",
		From:    "\tif s.Writes > log.write {\n\t\tl.awaits.Store(true)\n\t\treturn\n\t}\n",
		To:      "",
		Package: guarantees,
		Test:    "TestG3AResyncBetweenAWriteAndItsPublicationIsToldAfterIt",
		Fault:   "A resync tells a handler of a new state as if it had been told of it before.",
	},
	{
		Name: "merges-updates-from-a-state-that-was-never-told", Guards: []string{"G3"}, File: "notification.go",
		From:    "merged.kind, merged.old = tellUpdate, n.before()",
		To:      "merged.kind, merged.old = tellUpdate, later.before()",
		Package: guarantees,
		Test:    "TestG3OfEachKeyAHandlerHearsAnAddThenUpdatesThenADelete",
		Fault:   "A handler that fell behind gets an update whose old object it has never been shown.",
	},
	{
		Name: "tells-a-delete-of-what-was-never-told", Guards: []string{"G3"}, File: "notification.go",
		From: `			merged = notification{}
`,
		To: `			merged = later
`,
		Package: guarantees,
		Test:    "TestG3WhatComesAndGoesBehindABusyHandlerIsNotTold",
		Fault:   "A handler hears the end of an object whose beginning it was spared.",
	},
	{
		Name: "leaves-a-changed-object-out-of-its-new-index-value", Guards: []string{"G4"}, File: "internal/table/reference.go",
		From: "\t\t\tw.unpost(at, one)\n\t\t}\n\t\trefs.set(number, w.post(at, number, values[0]))\n",
		To: `			w.unpost(at, one)
			refs.set(number, reference{})
			return
		}
		refs.set(number, w.post(at, number, values[0]))
`,
		Package: guarantees,
		Test:    "TestG4StoreAndIndexesChangeBeforeHandlersAreTold",
		Fault:   "A handler looks an object up by the label that it was just told of, and does not find it.",
	},
	{
		Name: "removes-a-deleted-object-in-the-background", Guards: []string{"G4"}, File: "staged.go",
		From: "\t\told, existed = w.table.Remove(s.key)\n",
		To: `		old, existed = w.table.Find(s.key)
		m, key, was := w.m, s.key, old.Object
		go func() {
			m.writing.Lock()
			defer m.writing.Unlock()
			later := m.table.Begin(1)
			if found, exists := later.Find(key); exists && samePointer(found.Object, was) {
				later.Remove(key)
			}
			later.Commit(nil)
		}()
`,
		Package: guarantees,
		Test:    "TestG4StoreAndIndexesChangeBeforeHandlersAreTold",
		Fault:   "A handler is told that an object is gone, and still finds it in the store.",
	},
}
