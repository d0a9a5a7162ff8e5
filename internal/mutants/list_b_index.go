package mutants

// indexFaults: index functions that fail, and stored objects that are modified (B13, B14, B22).
var indexFaults = []Mutant{
	{
		Name:   "stores-an-object-that-has-no-index-values",
		Guards: []string{"B13"},
		In:     "storage.refuse",
		From:   "s.quarantine.addInWrite(c.prepared.err, c.prepared.quarantineErr)",
		To: `
			s.quarantine.addInWrite(c.prepared.err, c.prepared.quarantineErr)
			p := &c.prepared
			at := s.table.Find(p.key, p.place)
			none := make([][]string, len(s.indexers.Load().names))
			s.table.Put(p.key, at, p.object, p.origin, none)`,
		Package: guarantees,
		Test:    "TestB13AFailingIndexFunctionChangesNothing",
		Fault:   "An object whose index function fails is stored, and no index finds it.",
	},
	{
		Name:   "computes-no-values-of-writes-for-an-added-index",
		Guards: []string{"G10"},
		In:     "indexerSet.valuesOf",
		From: `
			for _, addition := range set.additions {
				addition.compute(obj)
			}`,
		To:      "",
		Package: guarantees,
		Test:    "TestAnIndexIsCompleteAfterWritesBesideItsAddition",
		Fault:   "An added index lacks the objects that were written while it was added.",
	},
	{
		Name:    "keeps-the-index-entry-of-an-old-value",
		Guards:  []string{"B14"},
		Dir:     "internal/table",
		In:      "Table.Index",
		From:    "t.removeValue(at, number, before[0])",
		To:      "",
		Package: guarantees,
		Test:    "TestB14AChangedObjectLeavesNoDanglingIndexEntry",
		Fault:   "An index finds an object under a value that it no longer has.",
	},
	{
		Name:   "does-not-check-deleted-objects-for-mutation",
		Guards: []string{"B14"},
		Dir:    "mutation",
		In:     "detector.Run",
		From:   "watched[i].compare(report)",
		To: `
			if stored, _, _ := store.GetByKey(watched[i].key); stored != nil {
				watched[i].compare(report)
			}`,
		Package: guarantees,
		Test:    "TestB14AChangedObjectLeavesNoDanglingIndexEntryAndIsNamed",
		Fault:   "A mutation of an object shortly before its deletion is never reported.",
	},
	{
		Name:   "returns-the-same-map-of-indexers-twice",
		Guards: []string{"B22"},
		In:     "storage.GetIndexers",
		From:   "indexers := make(Indexers, len(set.names))",
		To: `
			returned, _ := set.computed.LoadOrStore("returned", make(Indexers, len(set.names)))
			indexers := returned.(Indexers)`,
		Package: guarantees,
		Test:    "TestB22GetIndexersReturnsACopy",
		Fault:   "A change of the map that GetIndexers returned is visible to other callers.",
	},
}
