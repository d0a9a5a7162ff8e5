package mutants

// How the source is asked, and what is said of its failures: G1, G12, G13.
var requestMutants = []Mutant{
	{
		Name: "lets-a-pause-grow-to-five-minutes", Guards: []string{"G1"}, File: "backoff.go",
		From:  "longestPause = 30 * time.Second",
		To:    "longestPause = 5 * time.Minute",
		Test:  "TestNoPauseIsLongerThanAMinute",
		Fault: "A server is back, and the cache stays stale for minutes.",
	},
	{
		Name: "does-not-heed-retry-after", Guards: []string{"G1"}, File: "backoff.go",
		From:    "pause = max(pause, min(f.retryAfter, maxRetryAfter), b.stretch(now, f.requests))",
		To:      "pause = max(pause, b.stretch(now, f.requests))",
		Package: guarantees,
		Test:    "TestG1RetryAfterIsHonoured",
		Fault:   "An overloaded server is asked again before the time that it named.",
	},
	{
		Name: "asks-for-the-very-version-that-cannot-be-watched", Guards: []string{"G1"}, File: "list.go",
		From:    "options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan",
		To:      "options.ResourceVersionMatch = metav1.ResourceVersionMatchExact",
		Package: guarantees,
		Test:    "TestG1APagedRelistGetsPastAVersionThatCannotBeWatched",
		Fault:   "The mirror lists the same old state again and again and never gets past it.",
	},
	{
		Name: "is-silent-about-a-watch-that-is-refused", Guards: []string{"G12"}, File: "watch.go",
		From: "\tm.failed(m.ctx, err)\n\tf := failure{",
		To: `	if action != watchAgain {
		m.failed(m.ctx, err)
	}
	f := failure{`,
		Package: guarantees,
		Test:    "TestG12EveryFailureIsReportedOnceWithItsCause",
		Fault:   "A cache cannot reach its server, and no error handler hears of it.",
	},
	{
		Name: "reports-a-failed-list-twice", Guards: []string{"G12"}, File: "list.go",
		From:    "\tm.failed(m.ctx, err)\n\treturn m.pause(stateWhole, f)",
		To:      "\tm.failed(m.ctx, err)\n\tm.failed(m.ctx, err)\n\treturn m.pause(stateWhole, f)",
		Package: guarantees,
		Test:    "TestG12EveryFailureIsReportedOnceWithItsCause",
		Fault:   "Alerts count twice as many failures as there were.",
	},
	{
		Name: "keeps-the-last-failure-out-of-the-status", Guards: []string{"G12"}, File: "status.go",
		From:    "\tr.report.last = last\n",
		To:      "",
		Package: guarantees,
		Test:    "TestG12EveryFailureIsReportedOnceWithItsCause",
		Fault:   "The status says that a source fails and not why.",
	},
	{
		Name: "asks-a-broken-watch-again-without-a-pause", Guards: []string{"G13"}, File: "watch.go",
		From:    "if m.progress.watchFailures < watchesBeforeList {\n\t\t\treturn m.pause(stateWatch, f)",
		To:      "if m.progress.watchFailures < watchesBeforeList {\n\t\t\treturn step{state: stateWatch}",
		Package: guarantees,
		Test:    "TestG13AFailingSourceGetsFewRequests",
		Fault:   "A thousand clients storm a server that is just coming back.",
	},
	{
		Name: "starts-the-backoff-over-with-each-good-list", Guards: []string{"G13"}, File: "list.go",
		From:    "\tm.mu.Unlock()\n\tm.succeeded(PhaseWatching)\n",
		To:      "\tm.mu.Unlock()\n\tp.backoff.failing = false\n\tm.succeeded(PhaseWatching)\n",
		Package: guarantees,
		Test:    "TestG13AFailingSourceGetsFewRequests",
		Fault:   "A server whose watches fail is listed again every second, though lists are what costs it most.",
	},
	{
		Name: "does-not-count-the-requests-that-are-about-to-be-made", Guards: []string{"G13"}, File: "backoff.go",
		From:  "if len(b.since(b.runStart))+n <= allowed.firstMinute {",
		To:    "if len(b.since(b.runStart)) <= allowed.firstMinute {",
		Test:  "TestBackoffKeepsTheLimitsWhateverFails",
		Fault: "A failing source gets more requests in the first minute than was promised.",
	},
	{
		Name: "pauses-after-progress-as-after-a-failure", Guards: []string{"G13"}, File: "backoff.go",
		From:    "\t\tpause = min(pause, maxProgressPause)\n",
		To:      "\t\tpause = min(pause, limitMinute)\n",
		Package: guarantees,
		Test:    "TestG13AWatchThatClosesAfterProgressIsFollowedSooner",
		Fault:   "Behind a proxy that cuts watches the cache is half a minute stale.",
	},
}
