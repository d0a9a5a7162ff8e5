package mutants

// Objects that cannot be applied, and transforms: G6, G14.
var objectMutants = []Mutant{
	{
		Name:   "ends-a-watch-because-of-one-bad-object",
		Guards: []string{"G6"},
		In:     "openWatch.applyChanges",
		From:   "w.recordAccepted(changes[:accepted])",
		To: `
			w.recordAccepted(changes[:accepted])
			for i := range changes[:accepted] {
				if changes[i].prepared.err != nil {
					return changes[i].prepared.err
				}
			}`,
		Package: guarantees,
		Test:    "TestB6OneBadObjectIsQuarantinedAndDelaysNoOther",
		Fault:   "One object that cannot be transformed causes endless relists.",
	},
	{
		Name:    "applies-a-streamed-deletion-of-another-type",
		Guards:  []string{"G6"},
		In:      "openWatch.examine",
		From:    "c.received.event.Type == watch.Bookmark",
		To:      "c.received.event.Type == watch.Bookmark || w.listing != nil && c.received.kind == Deleted",
		Package: guarantees,
		Test:    "TestG6InAStreamADeletionOfAnotherTypeDeletesNothing",
		Fault:   "The deletion of a ConfigMap deletes the Pod with the same name from the cache.",
	},
	{
		Name:   "deletes-listed-bad-objects-from-a-queue",
		Guards: []string{"G6"},
		In:     "queueReplacement.Add",
		From:   "r.retained.Insert(key)",
		To:     "_ = key",
		Test:   "TestWhatAListCouldNotBringStays",
		Fault:  "An object that exists and cannot be decoded is delivered as deleted.",
	},
	{
		Name:   "deletes-listed-bad-objects-from-a-store",
		Guards: []string{"G6"},
		In:     "storeReplacement.publish",
		From:   "scope.hasKey(key) && !r.retains(key)",
		To:     "scope.hasKey(key)",
		Test:   "TestAPartReturnsWhatItRejects",
		Fault:  "An object with one state that cannot be applied is deleted by the next list.",
	},
	{
		Name:    "reports-a-bad-object-at-every-relist",
		Guards:  []string{"G6"},
		In:      "quarantineEntry.repeats",
		From:    `failure.ResourceVersion != ""`,
		To:      `failure.ResourceVersion == ""`,
		Package: guarantees,
		Test:    "TestB6OneBadObjectIsQuarantinedAndDelaysNoOther",
		Fault:   "One bad object floods the log and the error handler.",
	},
	{
		Name:    "reports-a-quarantined-key-as-not-found",
		Guards:  []string{"G6"},
		In:      "storage.getMissing",
		From:    "s.quarantine.shared.find(key)",
		To:      "error(nil)",
		Package: guarantees,
		Test:    "TestG6AMirrorsGetOfAQuarantinedKeyReturnsErrQuarantined",
		Fault: "A controller deletes the dependents of an object that exists but could not " +
			"be decoded.",
	},
	{
		Name:    "never-relists-damaged-items",
		Guards:  []string{"G6"},
		In:      "listing.recordCommit",
		From:    "l.progress.refetch.recordList(l.run.undecodedVersions(), now)",
		To:      "",
		Package: guarantees,
		Test:    "TestG6ADamagedItemOfAListIsListedOnceMore",
		Fault:   "After one flipped bit in a list an object is missing until its next change.",
	},
	{
		Name:    "relists-undecodable-items-forever",
		Guards:  []string{"G6"},
		In:      "refetch.recordList",
		From:    "known != version",
		To:      "known == version",
		Package: guarantees,
		Test:    "TestG6AnItemThatCannotBeDecodedTwiceStaysQuarantined",
		Fault:   "One object that cannot be decoded causes a full list every minute.",
	},
	{
		Name:   "keeps-unwanted-objects-in-a-queue",
		Guards: []string{"G14"},
		In:     "DeltaFIFO.addLocked",
		From:   "!last.isDeletable()",
		To:     "!last.isDeletable() || r.Object == nil",
		Test:   "TestAQueueEqualsAMap",
		Fault:  "An object that the transform now drops stays in the cache in its previous state.",
	},
	{
		Name:   "keeps-unwanted-objects-in-a-store",
		Guards: []string{"G14"},
		In:     "change.transform",
		From:   "p.deletes = true; p.dropped = true; p.object = nil",
		To:     "p.unchanged = true",
		Test:   "TestAnUnwantedObjectIsADeletionIfItWasPresent",
		Fault:  "An object that the transform now drops stays in the store in its previous state.",
	},
	{
		Name:   "transforms-unchanged-objects-of-a-relist-in-a-store",
		Guards: []string{"G14"},
		In:     "intake.prepare",
		From:   "ctx.Err() != nil || p.err != nil || p.unchanged",
		To:     "ctx.Err() != nil || p.err != nil",
		Test:   "TestAnUnchangedObjectStaysThroughARelist",
		Fault:  "Each relist of an informer needlessly transforms every object again.",
	},
	{
		Name:   "transforms-unchanged-objects-of-a-relist-in-a-queue",
		Guards: []string{"G14"},
		In:     "queueReplacement.stageObject",
		From:   "r.isUnchanged(c)",
		To: `
			func() bool {
				_, _, _ = callTransform(c.prepared.key, queue.keys.keyFunc, queue.transformer, obj)
				return r.isUnchanged(c)
			}()`,
		Test:  "TestARelistLeavesUnchangedObjectsAlone",
		Fault: "Each relist of a queue needlessly transforms every object again.",
	},
}
