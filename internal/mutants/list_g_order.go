package mutants

// The states of each key that readers and handlers see, and their order: G2, G3, G4.
var orderMutants = []Mutant{
	{
		Name: "forgets-the-version-of-an-aborted-first-list", Guards: []string{"G2"}, File: "list.go",
		From:    "l.typeSeen && !l.proof.Load().accepted {",
		To:      "l.typeSeen && l.proof.Load().accepted {",
		Package: guarantees,
		Test:    "TestG2AFirstListIsNotFollowedByAnOlderOne",
		Fault:   "After an aborted first list a handler receives an older state of an object that it knows.",
	},
	{
		Name: "resyncs-a-stale-state", Guards: []string{"G2"}, File: "delta_fifo.go",
		From:    "\t\tcase last.queued != nil:\n\t\tcase last.err",
		To:      "\t\tcase last.queued != nil && f.own != nil:\n\t\t\tfound := f.own.entry(key)\n\t\t\tf.log.add(record{kind: recordSync, object: found.Object, key: key, origin: found.Origin})\n\t\tcase last.queued != nil:\n\t\tcase last.err",
		Package: guarantees,
		Test:    "TestB21ChangesOfARelistAreNotDeliveredAsAResync",
		Fault:   "A resync queues the stored state after a newer pending one, and the object regresses.",
	},
	{
		Name: "compares-versions-as-strings", Guards: []string{"G2"}, File: "keys.go",
		From: `	if len(a) > len(b) || len(a) == len(b) && a >= b {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
`,
		To: `	_, err := resourceversion.CompareResourceVersion(a, b)
	order := map[bool]int{true: -1}[a < b]
`,
		Package: guarantees,
		Test:    "TestG2AFirstListIsNotFollowedByAnOlderOne",
		Fault:   "Version 10 is treated as older than version 9.",
	},
	{
		Name: "compares-event-versions-as-strings", Guards: []string{"G2"}, File: "internal/table/key.go",
		From:    "o.version < other.version",
		To:      "strconv.FormatUint(o.version, 10) < strconv.FormatUint(other.version, 10)",
		Package: guarantees,
		Test:    "TestG3AnOrderedHandlerReceivesEverythingInTheSourcesOrder",
		Fault:   "An object at version 10 is treated as older than at version 9, and causes a relist.",
	},
	{
		Name: "merges-an-update-from-an-undelivered-state", Guards: []string{"G3", "B29"}, File: "internal/eventlog/log.go",
		From:    "	first.New = later.New\n	switch {\n",
		To:      "	first.New = later.New\n	first.Old = later.Old\n	switch {\n",
		Package: guarantees,
		Test:    "TestG3ForEachKeyAHandlerReceivesAddThenUpdatesThenDelete",
		Fault:   "A handler with a backlog receives an update whose old object it has never received.",
	},
	{
		Name: "delivers-a-delete-of-an-object-never-added", Guards: []string{"G3"}, File: "internal/eventlog/log.go",
		From:    "		*first = Record[K]{}\n",
		To:      "		*first = *later\n",
		Package: guarantees,
		Test:    "TestG3AnObjectAddedAndDeletedBehindABusyHandlerIsNotDelivered",
		Fault:   "A handler receives the deletion of an object whose addition it never received.",
	},
	{
		Name: "omits-a-changed-object-from-its-new-index-value", Guards: []string{"G4"}, File: "internal/table/index.go",
		From:    "\trecords = records[:0]\n",
		To:      "\tif len(records) == 1 {\n\t\trefs.set(number, nil)\n\t\treturn\n\t}\n\trecords = records[:0]\n",
		Package: guarantees,
		Test:    "TestG4StoreAndIndexesChangeBeforeHandlersAreNotified",
		Fault:   "A handler looks up an object by the label that it just received, and does not find it.",
	},
	{
		Name: "removes-a-deleted-object-in-the-background", Guards: []string{"G4"}, File: "storage.go",
		From:    "\t\tm.table.Remove(at)\n",
		To:      "\t\tkey := c.key\n\t\tgo func() {\n\t\tm.writing.Lock()\n\t\tdefer m.writing.Unlock()\n\t\tm.table.Begin(1)\n\t\tif found := m.table.Find(key, m.table.Seek(key)); found.Exists && table.Same(found.Object, at.Object) {\n\t\t\tm.table.Remove(found)\n\t\t}\n\t\tm.table.Commit(nil)\n\t}()\n",
		Package: guarantees,
		Test:    "TestG4StoreAndIndexesChangeBeforeHandlersAreNotified",
		Fault:   "A handler is notified of a deletion, and still finds the object in the store.",
	},
}
