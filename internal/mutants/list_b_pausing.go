package mutants

// pausingFaults: streaming lists and watches that fail, and what is waited for after
// them (B1-B4, B26).
var pausingFaults = []Mutant{
	{
		Name:    "forgets-how-many-streams-have-failed",
		Guards:  []string{"B1"},
		File:    "watch_list.go",
		From:    "m.progress.streamTries++",
		To:      "m.progress.streamTries = 1",
		Package: guarantees,
		Test:    "TestB1ASilentStreamIsFollowedByOnePauseAndOneList",
		Fault:   "A server that cuts each streaming list is asked for it for ever, and the cache stays empty.",
	},
	{
		Name:    "waits-for-a-second-stream-after-a-silence",
		Guards:  []string{"B1"},
		File:    "watch_list.go",
		From:    "m.progress.streamTries >= streamTries || l.silent || cause",
		To:      "m.progress.streamTries >= streamTries || cause",
		Package: guarantees,
		Test:    "TestB1ASilentStreamIsFollowedByOnePauseAndOneList",
		Fault:   "Where the end of a streaming list is lost the cache is empty for 20 s and more.",
	},
	{
		Name:    "waits-for-the-answer-to-a-stream-as-long-as-for-a-watch",
		Guards:  []string{"B1"},
		File:    "watch_list.go",
		From:    "l.watch, err = l.open(options, timeout, streamQuiet)",
		To:      "l.watch, err = l.open(options, timeout, timeout+watchGrace)",
		Package: guarantees,
		Test:    "TestB1AStreamThatIsNeverAnsweredIsLeftAfterTenSeconds",
		Fault:   "A server that accepts a streaming list and says nothing keeps the cache empty for ten minutes.",
	},
	{
		Name:   "streams-again-every-second-after-expired",
		Guards: []string{"B2", "G13"},
		File:   "watch_list.go",
		From: `	cause := CauseOf(err)
	m.progress.streamTries++
`,
		To: `	cause := CauseOf(err)
	if cause == CauseExpired {
		m.progress.unknown = true
		m.failed(m.ctx, err)
		return step{stateWhole, time.Second}
	}
	m.progress.streamTries++
`,
		Package: guarantees,
		Test:    "TestB2AStreamingListThatIsExpiredIsNotHammered",
		Fault:   "A streaming list that is answered with expired is asked for sixty times a minute.",
	},
	{
		Name:   "does-not-count-an-expired-stream-as-a-try",
		Guards: []string{"B2"},
		File:   "watch_list.go",
		From:   "m.progress.streamTries++",
		To: `if cause != CauseExpired {
		m.progress.streamTries++
	}`,
		Package: guarantees,
		Test:    "TestB2AStreamingListThatIsAlwaysRefusedGivesWayToAList",
		Fault:   "Where each streaming list is expired no list is ever made, and the cache stays empty.",
	},
	{
		Name:    "treats-a-watch-with-an-event-as-healthy",
		Guards:  []string{"B3", "G13"},
		File:    "watch.go",
		From:    "case lived < shortWatch:",
		To:      "case lived < shortWatch && !w.moved:",
		Package: guarantees,
		Test:    "TestG13AWatchThatClosesAfterProgressIsFollowedSooner",
		Fault:   "A proxy that closes each watch after its first event is asked once for every event.",
	},
	{
		Name:    "counts-the-time-a-watch-was-not-answered-as-its-life",
		Guards:  []string{"B3"},
		File:    "watch.go",
		From:    "\tsince := w.answered\n",
		To:      "\tsince := w.asked\n",
		Package: guarantees,
		Test:    "TestB3ASlowRequestIsNoWatchThatHasLived",
		Fault:   "A server under load that answers late and closes at once is asked again without a pause.",
	},
	{
		Name:    "checks-the-context-only-between-two-waits",
		Guards:  []string{"B4", "G9"},
		File:    "reflector_run.go",
		From:    "		case <-m.ctx.Done():\n			return woken{end: endContext}\n",
		To:      "",
		Package: guarantees,
		Test:    "TestB4StopDuringAStreamingListsBackoffTakesNoTime",
		Fault:   "A program that stops while its source is down takes half a minute to end.",
	},
	{
		Name:    "counts-streams-that-failed-long-ago",
		Guards:  []string{"B1"},
		File:    "watch_list.go",
		From:    "	m.progress.streamTries = 0\n	m.stream = l.watch\n",
		To:      "	m.stream = l.watch\n",
		Package: guarantees,
		Test:    "TestB1FailuresOfStreamsCountInARow",
		Fault:   "Two failures a month apart make a list of what could be streamed.",
	},
	{
		Name: "counts-watches-that-broke-long-ago", Guards: []string{"B3"}, File: "watch.go",
		From:    "\t\tw.moved = true\n\t\tm.progress.watchFailures = 0\n",
		To:      "\t\tw.moved = true\n",
		Package: guarantees,
		Test:    "TestB3WatchesThatBringSomethingBeforeTheyBreakNeedNoList",
		Fault:   "Every fifth watch that a proxy cuts is followed by a list of everything.",
	},
	{
		Name:    "lets-pauses-double-in-the-first-minute",
		Guards:  []string{"B26"},
		File:    "backoff.go",
		From:    "		pause = min(pause, steadyPause)\n",
		To:      "		pause = min(pause, longestPause)\n",
		Package: guarantees,
		Test:    "TestB26ARecoveredServerIsFollowedWithinSeconds",
		Fault:   "A server was away for 20 s, and the cache is behind for as long again.",
	},
	{
		Name:    "begins-a-list-anew-for-a-page-that-failed",
		Guards:  []string{"B26"},
		File:    "list.go",
		From:    "failures < pageTries && !answersOf(",
		To:      "failures < 1 && !answersOf(",
		Package: guarantees,
		Test:    "TestB26AFailedPageIsAskedForAgain",
		Fault:   "Where half of the requests fail, a list of ten pages is never whole.",
	},
	{
		Name:    "treats-a-reset-connection-as-a-bad-version",
		Guards:  []string{"B26"},
		File:    "retry.go",
		From:    "{watchAgain, watchThenList, false}",
		To:      "{watchThenList, watchThenList, false}",
		Package: guarantees,
		Test:    "TestB26ResetConnectionsNeverCauseAList",
		Fault:   "A network that drops connections makes each mirror list everything.",
	},
	{
		Name:    "resumes-a-stream-that-is-always-cut",
		Guards:  []string{"B26"},
		File:    "retry.go",
		From:    "{watchAgain, watchThenList, false}",
		To:      "{watchAgain, watchAgain, false}",
		Package: guarantees,
		Test:    "TestB26AStreamThatIsAlwaysCutIsAnsweredByAList",
		Fault:   "A proxy cuts each stream at one event, and the cache stays at the state before it.",
	},
}
