package mutants

// Objects that cannot be taken, and transforms: G6, G14.
var objectMutants = []Mutant{
	{
		Name: "ends-a-watch-because-of-one-bad-object", Guards: []string{"G6"}, File: "watch_event.go",
		From:  "\tcase bad:\n\t\tm.setAside(",
		To:    "\tcase bad && e.Type == watch.Deleted:\n\t\tm.setAside(",
		Test:  "TestB6OneBadObjectIsQuarantinedAndHoldsNobodyBack",
		Fault: "One object that cannot be transformed makes the whole cache be listed again and again.",
	},
	{
		Name: "deletes-in-a-stream-what-an-object-of-another-type-was-called", Guards: []string{"G6"}, File: "watchlist.go",
		From:  "examine(e.Object, e.Type != watch.Bookmark, nil)",
		To:    "examine(e.Object, e.Type != watch.Bookmark && e.Type != watch.Deleted, nil)",
		Test:  "TestG6InAStreamADeletionOfAnotherTypeDeletesNothing",
		Fault: "The deletion of a ConfigMap deletes the Pod of its name from the cache.",
	},
	{
		Name: "deletes-what-a-list-has-only-in-a-bad-state", Guards: []string{"G6"}, File: "delta_fifo_replacement.go",
		From:  "func (r *queueReplacement) withhold(key string) {\n\tr.listed.Insert(key)\n",
		To:    "func (r *queueReplacement) withhold(key string) {\n",
		Test:  "TestG6WhatAListCouldNotBringStays",
		Fault: "An object that exists and cannot be decoded is told as deleted.",
	},
	{
		Name: "reports-a-bad-object-at-every-relist", Guards: []string{"G6"}, File: "quarantine.go",
		From:  "e.repeated = known && e.ResourceVersion != \"\" &&",
		To:    "e.repeated = known && e.ResourceVersion == \"\" &&",
		Test:  "TestB6OneBadObjectIsQuarantinedAndHoldsNobodyBack",
		Fault: "One bad object floods the log and the error handler.",
	},
	{
		Name: "says-not-found-of-what-is-quarantined", Guards: []string{"G6"}, File: "quarantine_readers.go",
		From:  "	if x.isEmpty() {\n		return nil\n",
		To:    "	if !x.isEmpty() {\n		return nil\n",
		Test:  "TestG6TheStoreOfAMirrorDoesNotSayNotFoundOfWhatIsQuarantined",
		Fault: "A controller deletes what belongs to an object that exists and could not be decoded.",
	},
	{
		Name: "never-lists-again-what-was-damaged-on-its-way", Guards: []string{"G6"}, File: "list.go",
		From:  "m.refetchLater(l.undecoded, began)",
		To:    "m.refetchLater(nil, began)",
		Test:  "TestG6ADamagedItemOfAListIsListedOnceMore",
		Fault: "One flipped bit in a list, and an object is missing until it is next written.",
	},
	{
		Name: "lists-again-and-again-what-is-never-decoded", Guards: []string{"G6"}, File: "refetch.go",
		From:  "again && known == version {",
		To:    "again && known != version {",
		Test:  "TestG6AnItemThatCannotBeDecodedTwiceStaysQuarantined",
		Fault: "One object that no decoder takes has the whole list made every minute.",
	},
	{
		Name: "transforms-in-the-queue-and-again-in-the-store", Guards: []string{"G14"}, File: "store_consumer.go",
		From:  "applier.applyBatch(ctx, b, s.queue.Transformer() != nil, s.outcomes)",
		To:    "applier.applyBatch(ctx, b, false, s.outcomes)",
		Test:  "TestG14AStoreThatTransformsIsFilledByAQueueThatDoesItForBoth",
		Fault: "A transform is run on its own result.",
	},
	{
		Name: "keeps-an-object-that-a-transform-no-longer-wants", Guards: []string{"G14"}, File: "delta_fifo.go",
		From:  "\tif a.unwanted {\n\t\ta.keepText()\n\t\ta.Type = Deleted\n\t}\n",
		To:    "\tif a.unwanted {\n\t\treturn\n\t}\n",
		Test:  "TestG14ATransformThatSaysNilDeletesWhatWasThere",
		Fault: "An object that no longer passes the filter stays in the cache in its last state that did.",
	},
	{
		Name: "transforms-what-a-relist-shows-unchanged", Guards: []string{"G14"}, File: "delta_fifo_replacement.go",
		From:  "if !before.deleted && (twice || !r.reset) && a.received.unchanged(before.Received) {\n\t\t\tr.list(key)\n",
		To:    "if !before.deleted && (twice || !r.reset) && a.received.unchanged(before.Received) {\n\t\t\tf.transform(&a)\n\t\t\tr.list(key)\n",
		Test:  "TestARelistOfUnchangedObjectsTellsNothing",
		Fault: "Each relist transforms every object again, for nothing.",
	},
}
