package mutants

// indexFaults: index functions that fail, and stored objects that are modified (B13, B14, B22).
var indexFaults = []Mutant{
	{
		Name: "stores-an-object-that-has-no-index-values", Guards: []string{"B13"}, File: "storage.go",
		From:    "\t\tm.quarantine.addChange(c)\n\t\treturn nil\n",
		To:      "\t\tm.quarantine.addChange(c)\n\t\tm.table.Put(c.key, at, c.object, c.origin, make([][]string, len(m.indexers.Load().names)))\n\t\treturn nil\n",
		Package: guarantees,
		Test:    "TestB13AFailingIndexFunctionChangesNothing",
		Fault:   "An object whose index function fails is stored, and no index finds it.",
	},
	{
		Name:    "computes-no-values-of-writes-for-an-added-index",
		Guards:  []string{"G10"},
		File:    "index.go",
		From:    "\tfor _, addition := range s.additions {\n\t\taddition.compute(obj)\n\t}\n",
		To:      "",
		Package: guarantees,
		Test:    "TestAnIndexIsCompleteAfterWritesBesideItsAddition",
		Fault:   "An added index lacks the objects that were written while it was added.",
	},
	{
		Name:    "keeps-the-index-entry-of-an-old-value",
		Guards:  []string{"B14"},
		File:    "internal/table/index.go",
		From:    "			i.remove(record, number)\n",
		To:      "",
		Package: guarantees,
		Test:    "TestB14AChangedObjectLeavesNoDanglingIndexEntry",
		Fault:   "An index finds an object under a value that it no longer has.",
	},
	{
		Name:    "does-not-check-deleted-objects-for-mutation",
		Guards:  []string{"B14"},
		File:    "mutation/detector.go",
		From:    "			watched[i].compare(report)\n",
		To:      "			if stored, _, _ := store.GetByKey(watched[i].key); stored != nil {\n				watched[i].compare(report)\n			}\n",
		Package: guarantees,
		Test:    "TestB14AChangedObjectLeavesNoDanglingIndexEntryAndIsNamed",
		Fault:   "A mutation of an object shortly before its deletion is never reported.",
	},
	{
		Name:   "returns-the-same-map-of-indexers-twice",
		Guards: []string{"B22"},
		File:   "index.go",
		From: `// GetIndexers returns a copy of the index functions.
func (m *storage) GetIndexers() Indexers {
	set := m.indexers.Load()
	indexers := make(Indexers, len(set.names))
`,
		To: `var returnedIndexers = map[*indexerSet]Indexers{}

// GetIndexers returns a copy of the index functions.
func (m *storage) GetIndexers() Indexers {
	set := m.indexers.Load()
	if indexers := returnedIndexers[set]; indexers != nil {
		return indexers
	}
	indexers := make(Indexers, len(set.names))
	returnedIndexers[set] = indexers
`,
		Package: guarantees,
		Test:    "TestB22GetIndexersReturnsACopy",
		Fault:   "A change of the map that GetIndexers returned is visible to other callers.",
	},
}
