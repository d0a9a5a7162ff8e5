package mutants

// lifetimeFaults: goroutines that outlive the run, objects that are retained, and waits that
// are too long (B17-B19, B24, B30).
var lifetimeFaults = []Mutant{
	{
		Name:    "never-stops-a-watch-that-has-ended",
		Guards:  []string{"B17"},
		In:      "run.watchState",
		From:    "w.stop()",
		To:      "m.watch = nil",
		Package: guarantees,
		Test:    "TestB17AStreamIsStoppedIfTheContextEndsAsItIsCommitted",
		Fault:   "Each ended watch leaves a connection open.",
	},
	{
		Name:   "never-ends-an-overdue-watch",
		Guards: []string{"B19"},
		In:     "openWatch.applyEvents",
		From:   "err := w.handleTimer()",
		To: `
			err := w.handleTimer()
			w.waits.timer = nil`,
		Package: guarantees,
		Test:    "TestB19AHalfOpenWatchIsEndedAndResumed",
		Fault:   "After a firewall has dropped the connection the cache is stale forever.",
	},
	{
		Name:    "relists-after-a-half-open-connection",
		Guards:  []string{"B19"},
		In:      "watchActions",
		From:    "CauseOverdueWatch: watchAgain",
		To:      "CauseOverdueWatch: listAgain",
		Package: guarantees,
		Test:    "TestB19AHalfOpenWatchIsEndedAndResumed",
		Fault: "Where connections are dropped when idle, each quiet cache lists everything " +
			"every ten minutes.",
	},
	{
		Name:    "times-the-headers-of-a-response-and-not-its-body",
		Guards:  []string{"B19"},
		Dir:     "kubeapi",
		In:      "stallTimer.reader",
		From:    "&stallReader{stall: s, body: body}",
		To:      "body",
		Package: "./kubeapi",
		Test:    "TestABodyThatStopsEndsTheRequestAfterTheLimit",
		Fault:   "A list whose connection freezes halfway never ends.",
	},
	{
		Name:    "keeps-a-dead-connection",
		Guards:  []string{"B30"},
		Dir:     "kubeapi",
		In:      "connection.discard",
		From:    "conn.Close()",
		To:      "conn",
		Package: guarantees,
		Test:    "TestB30AStalledListIsFollowedByOneOnAnotherConnection",
		Fault: "After a firewall has dropped the connection each list stalls until the kernel " +
			"gives up.",
	},
	{
		Name:    "discards-a-connection-that-carries-events",
		Guards:  []string{"B30"},
		Dir:     "kubeapi",
		In:      "response.isOnDeadConnection",
		From:    "silence >= min(r.stall.limit, silentTimeout)",
		To:      "true",
		Package: guarantees,
		Test:    "TestB30AConnectionThatCarriesEventsIsKept",
		Fault:   "A list that stalls ends all watches on its connection.",
	},
	{
		Name:    "repeats-a-watch-that-fails-late",
		Guards:  []string{"B30"},
		Dir:     "kubeapi",
		In:      "ListerWatcher.takeDiscard",
		From:    "time.Since(*discarded) < noticeDelay",
		To:      "true",
		Package: guarantees,
		Test:    "TestB30AWatchThatFailsLateIsReturnedToItsCaller",
		Fault: "A watch that fails after minutes is sent again, and given up before the server owes " +
			"anything, so that a dead connection is kept.",
	},
	{
		Name:   "continues-a-string-across-lines",
		Guards: []string{"B24"},
		Dir:    "kubeapi/internal/jsonwire",
		In:     "strictScanner.end",
		From: `
			case s.inString:
				return at, false, errLineInString`,
		To:      "",
		Package: guarantees,
		Test:    "TestB24ALostQuoteIsNoticedAtTheEndOfItsLine",
		Fault: "A quote that is lost in transit delays the last event of a burst until the " +
			"next event.",
	},
	{
		Name:   "quarantines-a-damaged-watch-event-at-once",
		Guards: []string{"B24"},
		Dir:    "kubeapi",
		In:     "suspects.suspect",
		From: `
			s.seen[hash] = struct{}{}
			return true`,
		To: `
			s.seen[hash] = struct{}{}
			return !wellFormed`,
		Package: guarantees,
		Test:    "TestB24ADamagedByteLosesNoLaterEvent",
		Fault:   "An object whose timestamp lost a digit in transit is wrong until its next change.",
	},
	{
		Name:    "reads-a-frame-without-a-deadline",
		Guards:  []string{"B24"},
		Dir:     "kubeapi",
		In:      "frameReader.Read",
		From:    "frameTimeout + r.allowance - r.waited",
		To:      "frameTimeout + r.allowance",
		Package: guarantees,
		Test:    "TestB24AFrameThatGrowsByLaterEventsIsGivenUp",
		Fault: "A frame length that was increased in transit makes all later events part " +
			"of one frame.",
	},
	{
		Name:    "deletes-the-object-of-a-damaged-item",
		Guards:  []string{"B24"},
		Dir:     "kubeapi",
		In:      "listing.run",
		From:    "l.damageError()",
		To:      "nil",
		Package: "./kubeapi",
		Test:    "TestB24AnItemWithoutAReadableKeyDeletesNothing",
		Fault: "A damaged byte in the name of a listed object deletes it, and a controller " +
			"acts on that.",
	},
	{
		Name:    "retains-processed-objects",
		Guards:  []string{"B18"},
		Dir:     "internal/deltalog",
		In:      "Log.Finish",
		From:    "*r = Record{}",
		To:      "r.Kind = Blank",
		Package: "./internal/deltalog",
		Test:    "TestAProcessedObjectIsReleasedAtOnce",
		Fault:   "While one change is pending, every state processed after it stays in memory.",
	},
}
