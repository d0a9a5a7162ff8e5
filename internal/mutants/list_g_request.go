package mutants

// Requests to the source, and reports of its failures: G1, G12, G13.
var requestMutants = []Mutant{
	{
		Name:    "allows-pauses-of-five-minutes",
		Guards:  []string{"G1"},
		Dir:     "internal/backoff",
		In:      "LongestPause",
		From:    "30 * time.Second",
		To:      "5 * time.Minute",
		Package: backoffTests,
		Test:    "TestNoPauseIsLongerThanAMinute",
		Fault:   "A server has recovered, and the cache stays stale for minutes.",
	},
	{
		Name:    "ignores-retry-after",
		Guards:  []string{"G1"},
		Dir:     "internal/backoff",
		In:      "Backoff.AfterFailure",
		From:    "b.JitteredRetryAfter(f.RetryAfter)",
		To:      "time.Duration(0)",
		Package: guarantees,
		Test:    "TestG1RetryAfterIsHonoured",
		Fault:   "An overloaded server receives a request before its Retry-After has passed.",
	},
	{
		Name:    "lists-at-the-exact-version-that-cannot-be-watched",
		Guards:  []string{"G1"},
		In:      "listing.listOptions",
		From:    "options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan",
		To:      "options.ResourceVersionMatch = metav1.ResourceVersionMatchExact",
		Package: guarantees,
		Test:    "TestG1APagedRelistGetsPastAVersionThatCannotBeWatched",
		Fault:   "The mirror lists the same old state again and again.",
	},
	{
		Name:   "does-not-report-a-refused-watch",
		Guards: []string{"G12"},
		In:     "run.fail",
		From:   "m.reportFailure(failed.err, attempt.at)",
		To: `
			if failed.activity != PhaseWatching || !failed.request {
				m.reportFailure(failed.err, attempt.at)
			}`,
		Package: guarantees,
		Test:    "TestG12EveryFailureIsReportedOnceWithItsCause",
		Fault:   "A cache cannot reach its server, and the error handler is not called.",
	},
	{
		Name:   "reports-a-failed-list-twice",
		Guards: []string{"G12"},
		In:     "run.fail",
		From:   "m.reportFailure(failed.err, attempt.at)",
		To: `
			if failed.activity == PhaseListing {
				m.reportFailure(failed.err, attempt.at)
			}
			m.reportFailure(failed.err, attempt.at)`,
		Package: guarantees,
		Test:    "TestG12EveryFailureIsReportedOnceWithItsCause",
		Fault:   "Each failure of a list is counted and alerted twice.",
	},
	{
		Name:    "omits-the-last-failure-from-the-status",
		Guards:  []string{"G12"},
		In:      "Reflector.setLastFailureLocked",
		From:    "r.status.LastFailure = last",
		To:      "",
		Package: guarantees,
		Test:    "TestG12EveryFailureIsReportedOnceWithItsCause",
		Fault:   "The status shows that a source fails, but not why.",
	},
	{
		Name:   "resumes-a-broken-watch-without-a-pause",
		Guards: []string{"G13"},
		In:     "run.fail",
		From:   "return m.pauseUntil(attempt)",
		To: `
			m.progress.failedWatches.count++
			if next == stateWatch && m.progress.failedWatches.count%2 == 1 {
				return next
			}
			return m.pauseUntil(attempt)`,
		Package: guarantees,
		Test:    "TestG13AFailingSourceGetsFewRequests",
		Fault:   "A server that is recovering receives requests of a thousand clients at once.",
	},
	{
		Name:   "resets-the-backoff-with-each-good-list",
		Guards: []string{"G13"},
		In:     "listing.recordCommit",
		From:   "l.run.listCommitted(l.paging.paused)",
		To: `
			l.run.listCommitted(l.paging.paused)
			l.progress.backoff = backoff.New(nil, 0, l.reflector.options.Random)`,
		Package: guarantees,
		Test:    "TestG13AFailingSourceGetsFewRequests",
		Fault: "A server whose watches fail receives a list every second, its most " +
			"expensive request.",
	},
	{
		Name:    "ignores-upcoming-requests-in-the-limit",
		Guards:  []string{"G13"},
		Dir:     "internal/backoff",
		In:      "Backoff.firstMinuteDelay",
		From:    "len(b.requests.since(b.stretch.start))+n",
		To:      "len(b.requests.since(b.stretch.start))",
		Package: backoffTests,
		Test:    "TestTheLimitsHoldWhateverFails",
		Fault:   "A failing source receives more requests in the first minute than promised.",
	},
	{
		Name:    "pauses-after-progress-as-after-a-failure",
		Guards:  []string{"G13"},
		Dir:     "internal/backoff",
		In:      "watchSpacing",
		From:    "5500 * time.Millisecond",
		To:      "30 * time.Second",
		Package: guarantees,
		Test:    "TestG13AWatchThatClosesAfterProgressIsFollowedSooner",
		Fault:   "Behind a proxy that cuts watches the cache is half a minute stale.",
	},
}
