package mutants

// lifetimeFaults: what outlives its run, what is kept, and what is waited for too long
// (B17-B19).
var lifetimeFaults = []Mutant{
	{
		Name:   "forgets-a-stream-that-never-became-a-watch",
		Guards: []string{"B17"},
		File:   "run.go",
		From:   "	defer m.dropStream()\n",
		To:     "",
		Test:   "TestB17AStreamIsStoppedIfTheContextEndsAsItIsCommitted",
		Fault:  "A program that stops at the wrong moment leaves a watch open.",
	},
	{
		Name:   "keeps-the-table-that-the-queue-once-needed",
		Guards: []string{"B18"},
		File:   "delta_log.go",
		From:   "if len(l.table.slots) > keptPlaces && len(l.table.slots) >= 4*placesFor(l.keys) {",
		To:     "if len(l.table.slots) > keptPlaces && l.keys == 0 {",
		Test:   "TestB18ABurstIsGivenBackAsItDrains",
		Fault:  "The table of a queue stays as large as in its busiest minute.",
	},
	{
		Name:   "waits-for-an-open-watch-as-long-as-it-stays-open",
		Guards: []string{"B19"},
		File:   "watch.go",
		From:   "m.next(waiting{events: events, flood: flood, timer: w.deadline.C()})",
		To:     "m.next(waiting{events: events, flood: flood})",
		Test:   "TestB19AHalfOpenWatchIsEndedAndResumed",
		Fault:  "After a firewall has dropped the connection the cache stays as it is for ever.",
	},
	{
		Name:   "lists-anew-because-a-connection-was-half-open",
		Guards: []string{"B19"},
		File:   "retry.go",
		From:   "	case CauseOverdueWatch:\n		return watchAgainAtOnce\n",
		To:     "	case CauseOverdueWatch:\n		return listAgain\n",
		Test:   "TestB19AHalfOpenWatchIsEndedAndResumed",
		Fault:  "Where connections are dropped when idle, each quiet cache lists everything every ten minutes.",
	},
	{
		Name:    "guards-the-headers-of-an-answer-and-not-its-body",
		Guards:  []string{"B19"},
		File:    "kubeapi/stall.go",
		From:    "	return &stallReader{stall: s, body: body}\n",
		To:      "	return body\n",
		Package: "./kubeapi",
		Test:    "TestABodyThatStopsEndsTheRequestAfterTheLimit",
		Fault:   "A list whose connection freezes halfway is waited for for ever.",
	},
	{
		Name:   "keeps-alive-what-has-been-processed",
		Guards: []string{"B18"},
		File:   "delta_log.go",
		From:   "		r.Object, r.received = nil, Received{}\n",
		To:     "		r.received = Received{}\n",
		Test:   "TestAProcessedObjectIsLetGoOfAtOnce",
		Fault:  "Behind one change that waits, every state that has been processed since stays in memory.",
	},
}
