package mutants

// What readers see, and that they need not wait for it: G10.
var readerMutants = []Mutant{
	{
		Name: "does-not-know-that-somebody-keeps-a-snapshot", Guards: []string{"G10"}, File: "internal/table/table.go",
		From:  "\tt.freeze()\n\tkept := *t.state.Load()",
		To:    "\tkept := *t.state.Load()",
		Test:  "TestG10ASnapshotIsOfOneStateAndStaysAsItIs",
		Fault: "A report that is computed from a snapshot adds up objects of several moments.",
	},
	{
		Name: "takes-what-is-part-of-a-snapshot-for-its-own", Guards: []string{"G10"}, File: "internal/table/table.go",
		From:  "\t\tt.frozen.Store(true)\n\t\tt.epoch++\n",
		To:    "\t\tt.frozen.Store(true)\n",
		Test:  "TestG10ASnapshotStaysAsItIsThroughEverySingleWrite",
		Fault: "Objects that were written later appear in a snapshot that somebody kept.",
	},
	{
		Name: "writes-objects-into-what-a-snapshot-shows", Guards: []string{"G10"}, File: "internal/table/own.go",
		From:  "\tif c != nil && p.owners[at] == w.epoch {\n",
		To:    "\tif c != nil {\n",
		Test:  "TestG10ASnapshotIsOfOneStateAndStaysAsItIs",
		Fault: "An object that a snapshot has turns into another while somebody goes through them.",
	},
	{
		Name: "changes-the-indexes-of-a-snapshot", Guards: []string{"G10"}, File: "internal/table/index.go",
		From:  "\tif i.owner != w.epoch {\n",
		To:    "\tif i == nil {\n",
		Test:  "TestG10ASnapshotIsOfOneStateAndStaysAsItIs",
		Fault: "A snapshot finds objects by values that they have only had since.",
	},
	{
		Name: "hands-out-a-snapshot-from-before-a-write", Guards: []string{"G10"}, File: "internal/table/write.go",
		From:  "\tt.latest.Store(nil)\n\tt.changes.Add(1)\n",
		To:    "\tt.changes.Add(1)\n",
		Test:  "TestG10ASnapshotIsOfOneStateAndStaysAsItIs",
		Fault: "Who has written an object and then lists them does not find it.",
	},
	{
		Name: "shows-a-batch-object-by-object", Guards: []string{"G10"}, File: "internal/table/table.go",
		From:  "\t\tif at := t.changes.Load(); at&1 == 0 {\n",
		To:    "\t\tif at := t.changes.Load(); at >= 0 {\n",
		Test:  "TestG10ABatchIsSeenWholeOrNotAtAll",
		Fault: "A program finds a deployment's new pod and, where it looks next, not the new deployment.",
	},
	{
		Name: "has-readers-wait-for-a-large-write", Guards: []string{"G10"}, File: "internal/table/write.go",
		From:  "aside: changes > inPlace}",
		To:    "aside: false}",
		Test:  "TestG10ReadersGoOnInTheMiddleOfALargeWrite",
		Fault: "While a list of 100,000 objects is applied every request that needs the cache stands still.",
	},
	{
		Name: "calls-index-functions-under-the-lock", Guards: []string{"G10"}, File: "keyed_store.go",
		From:  "\t\ts.index(k.storage.indexers.Load())\n",
		To:    "\t\tk.storage.mu.Lock()\n\t\tdefer k.storage.mu.Unlock()\n\t\ts.index(k.storage.indexers.Load())\n",
		Test:  "TestG10ReadersGoOnWhileAUsersFunctionTakesItsTime",
		Fault: "All readers wait while an index function works on one object.",
	},
	{
		Name: "takes-one-key-for-another-with-its-hash", Guards: []string{"G10"}, File: "internal/table/write.go",
		From:    "\t\tif c.head.isAlike() {\n\t\t\tw.makeAlike(hash)\n\t\t}\n",
		To:      "",
		Package: "./internal/table",
		Test:    "TestKeysOfOneHashAreToldApart",
		Fault:   "Who asks for one object gets another one.",
	},
	{
		Name: "leaves-a-shortcut-to-what-has-been-replaced", Guards: []string{"G10"}, File: "internal/table/shortcuts.go",
		From:    "\tstoreHalves(s.segments[from:from+span], zero, one)\n",
		To:      "\tif s.segments[from].Load() == nil {\n\t\tstoreHalves(s.segments[from:from+span], zero, one)\n\t}\n",
		Package: "./internal/table",
		Test:    "TestShortcutsLeadWhereTheLongWayDoes",
		Fault:   "What is written after a snapshot was taken is not found by its key.",
	},
	{
		Name: "reads-in-the-middle-of-a-write", Guards: []string{"G10"}, File: "internal/table/table.go",
		From:  "exists && at&1 == 0 && t.changes.Load() == at && c.hasHash(hash)",
		To:    "exists && t.changes.Load() == at && c.hasHash(hash)",
		Test:  "TestG10ABatchIsSeenWholeOrNotAtAll",
		Fault: "A program finds an object of a batch as it is now and, where it looks next, another one as it was.",
	},
}
