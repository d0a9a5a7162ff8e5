package mutants

// The states of each key that readers and handlers see, and their order: G2, G3, G4.
var orderMutants = []Mutant{
	{
		Name:    "forgets-the-version-of-an-aborted-first-list",
		Guards:  []string{"G2"},
		In:      "listing.abort",
		From:    "!l.reflector.proof.Load().accepted",
		To:      "l.reflector.proof.Load().accepted",
		Package: guarantees,
		Test:    "TestG2AFirstListIsNotFollowedByAnOlderOne",
		Fault: "After an aborted first list a handler receives an older state of an object " +
			"that it knows.",
	},
	{
		Name:   "resyncs-a-stale-state",
		Guards: []string{"G2"},
		In:     "DeltaFIFO.resyncLocked",
		From:   "last := f.lastLocked(key)",
		To: `
			last := f.lastLocked(key)
			if known := f.known.last(key); last.queued != nil && known.present {
				last = known
			}`,
		Package: guarantees,
		Test:    "TestB21ChangesOfARelistAreNotDeliveredAsAResync",
		Fault: "A resync queues the stored state after a newer pending one, and the object " +
			"regresses.",
	},
	{
		Name:   "compares-versions-as-strings",
		Guards: []string{"G2"},
		In:     "versionBefore",
		From: `
			if len(a) > len(b) || len(a) == len(b) && a >= b {
				return false
			}
			order, err := resourceversion.CompareResourceVersion(a, b)`,
		To: `
			_, err := resourceversion.CompareResourceVersion(a, b)
			order := map[bool]int{true: -1}[a < b]`,
		Package: guarantees,
		Test:    "TestG2AFirstListIsNotFollowedByAnOlderOne",
		Fault:   "Version 10 is treated as older than version 9.",
	},
	{
		Name:    "compares-event-versions-as-strings",
		Guards:  []string{"G2"},
		Dir:     "internal/table",
		In:      "Origin.OlderThan",
		From:    "o.version < other.version",
		To:      "strconv.FormatUint(o.version, 10) < strconv.FormatUint(other.version, 10)",
		Package: guarantees,
		Test:    "TestG3AnOrderedHandlerReceivesEverythingInTheSourcesOrder",
		Fault: "An object at version 10 is treated as older than at version 9, and causes " +
			"a relist.",
	},
	{
		Name:    "asks-a-filter-about-the-final-state",
		Guards:  []string{"B29"},
		In:      "FilteringResourceEventHandler.notifyDelete",
		From:    "!h.passes(d.last)",
		To:      "!h.passes(d.final)",
		Package: guarantees,
		Test:    "TestB29AFilterPassesTheDeletionOfAnObjectThatItsHandlerHas",
		Fault:   "A filter's handler keeps an object whose deletion shows it outside of the filter.",
	},
	{
		Name:    "merges-a-deletion-from-an-undelivered-state",
		Guards:  []string{"B29"},
		Dir:     "internal/eventlog",
		In:      "merge",
		From:    "first.New = nil",
		To:      "",
		Package: guarantees,
		Test:    "TestB29AMergedChangeStartsFromTheStateThatWasDeliveredLast",
		Fault:   "A handler that files objects by a field keeps an entry of a deleted object.",
	},
	{
		Name:   "merges-an-update-from-an-undelivered-state",
		Guards: []string{"G3", "B29"},
		Dir:    "internal/eventlog",
		In:     "merge",
		From:   "first.New = later.New",
		To: `
			first.New = later.New
			first.Old = later.Old`,
		Package: guarantees,
		Test:    "TestG3ForEachKeyAHandlerReceivesAddThenUpdatesThenDelete",
		Fault: "A handler with a backlog receives an update whose old object it has never " +
			"received.",
	},
	{
		Name:    "delivers-a-delete-of-an-object-never-added",
		Guards:  []string{"G3"},
		Dir:     "internal/eventlog",
		In:      "merge",
		From:    "*first = Record[K]{}",
		To:      "*first = *later",
		Package: guarantees,
		Test:    "TestG3AnObjectAddedAndDeletedBehindABusyHandlerIsNotDelivered",
		Fault:   "A handler receives the deletion of an object whose addition it never received.",
	},
	{
		Name:   "omits-a-changed-object-from-its-new-index-value",
		Guards: []string{"G4"},
		Dir:    "internal/table",
		In:     "Table.Index",
		From:   "now = append(now, i.add(values[0], number))",
		To: `
			if len(t.references.of(number, at)) != 1 {
				now = append(now, i.add(values[0], number))
			}`,
		Package: guarantees,
		Test:    "TestG4StoreAndIndexesChangeBeforeHandlersAreNotified",
		Fault: "A handler looks up an object by the label that it just received, and does " +
			"not find it.",
	},
	{
		Name:   "removes-a-deleted-object-in-the-background",
		Guards: []string{"G4"},
		In:     "storage.remove",
		From:   "s.table.Remove(at)",
		To: `
			key := c.prepared.key
			go func() {
				s.writing.Lock()
				defer s.writing.Unlock()
				s.table.Begin(1)
				found := s.table.Find(key, s.table.Seek(key))
				if found.Exists && table.Same(found.Object, at.Object) {
					s.table.Remove(found)
				}
				s.table.Commit(nil)
			}()`,
		Package: guarantees,
		Test:    "TestG4StoreAndIndexesChangeBeforeHandlersAreNotified",
		Fault:   "A handler is notified of a deletion, and still finds the object in the store.",
	},
}
