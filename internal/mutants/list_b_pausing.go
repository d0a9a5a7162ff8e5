package mutants

// pausingFaults: streaming lists and watches that fail, and pauses (B1-B4, B26-B28, B31, B32).
var pausingFaults = []Mutant{
	{
		Name:    "forgets-how-many-streams-have-failed",
		Guards:  []string{"B1"},
		In:      "streaming.recordFailure",
		From:    "s.failures++",
		To:      "s.failures = 1",
		Package: guarantees,
		Test:    "TestB1ASilentStreamIsFollowedByOnePauseAndOneList",
		Fault: "If a server cuts each streaming list, no list is ever requested and the " +
			"cache stays empty.",
	},
	{
		Name:    "streams-again-after-a-silent-stream",
		Guards:  []string{"B1"},
		In:      "run.streamFailed",
		From:    "silent || rejected",
		To:      "rejected",
		Package: guarantees,
		Test:    "TestB1ASilentStreamIsFollowedByOnePauseAndOneList",
		Fault: "If the final bookmark of a streaming list is lost, the cache is empty for " +
			"20 s or more.",
	},
	{
		Name:    "uses-the-watch-timeout-for-a-stream-response",
		Guards:  []string{"B1"},
		In:      "run.newWatch",
		From:    "limit = streamQuiet",
		To:      "limit = timeout",
		Package: guarantees,
		Test:    "TestB1AStreamWithoutAResponseIsAbandonedAfterTenSeconds",
		Fault: "A server that never answers a streaming list keeps the cache empty for ten " +
			"minutes.",
	},
	{
		Name:   "streams-again-every-second-after-expired",
		Guards: []string{"B2", "G13"},
		In:     "run.streamFailed",
		From:   "m.progress.streaming.recordFailure(m.clock.Now(), silent || rejected)",
		To: `
			if CauseOf(err) == CauseExpired {
				m.progress.versionInvalid = true
				m.reportFailure(err, m.clock.Now())
				<-m.clock.After(time.Second)
				return stateList
			}
			m.progress.streaming.recordFailure(m.clock.Now(), silent || rejected)`,
		Package: guarantees,
		Test:    "TestB2AStreamingListThatIsExpiredIsNotHammered",
		Fault:   "A streaming list that is answered with expired is requested sixty times a minute.",
	},
	{
		Name:   "does-not-count-an-expired-stream-as-an-attempt",
		Guards: []string{"B2"},
		In:     "run.streamFailed",
		From:   "m.progress.streaming.recordFailure(m.clock.Now(), silent || rejected)",
		To: `
			if CauseOf(err) != CauseExpired {
				m.progress.streaming.recordFailure(m.clock.Now(), silent || rejected)
			}`,
		Package: guarantees,
		Test:    "TestB2AStreamingListThatIsAlwaysRefusedFallsBackToAList",
		Fault: "If each streaming list is answered with expired, no list is ever requested " +
			"and the cache stays empty.",
	},
	{
		Name:    "treats-a-watch-with-an-event-as-healthy",
		Guards:  []string{"B3", "G13"},
		Dir:     "internal/backoff",
		In:      "Backoff.AfterWatch",
		Nth:     2, // the pause
		From:    "w.Lived < LongWatch",
		To:      "w.Lived < LongWatch && !w.Advanced",
		Package: guarantees,
		Test:    "TestG13AWatchThatClosesAfterProgressIsFollowedSooner",
		Fault: "A proxy that closes each watch after its first event receives one request " +
			"for every event.",
	},
	{
		Name:    "counts-request-time-as-watch-lifetime",
		Guards:  []string{"B3"},
		In:      "openWatch.lived",
		From:    "now.Sub(w.answeredAt)",
		To:      "now.Sub(w.requestedAt)",
		Package: guarantees,
		Test:    "TestB3RequestTimeIsNotWatchLifetime",
		Fault: "An overloaded server that answers late and closes at once receives the " +
			"next request without a pause.",
	},
	{
		Name:    "checks-the-context-only-between-two-waits",
		Guards:  []string{"B4", "G9"},
		In:      "run.wait",
		From:    "m.ctx.Done()",
		To:      "make(chan struct{})",
		Package: guarantees,
		Test:    "TestB4StopDuringAStreamingListsBackoffTakesNoTime",
		Fault:   "A program that stops while its source is down takes half a minute to end.",
	},
	{
		Name:    "counts-old-stream-failures",
		Guards:  []string{"B1"},
		In:      "listing.endStream",
		From:    "l.progress.streaming.recordSuccess()",
		To:      "",
		Package: guarantees,
		Test:    "TestB1OnlyConsecutiveStreamFailuresCount",
		Fault:   "Two stream failures a month apart cause a list instead of a stream.",
	},
	{
		Name:    "counts-old-watch-failures",
		Guards:  []string{"B3"},
		In:      "run.watchEnded",
		From:    "m.progress.watchFailures = 0",
		To:      "",
		Package: guarantees,
		Test:    "TestB3WatchesThatDeliverEventsBeforeTheyBreakNeedNoList",
		Fault:   "Every fifth watch that a proxy cuts is followed by a full list.",
	},
	{
		Name:    "doubles-pauses-in-the-first-minute",
		Guards:  []string{"B26"},
		Dir:     "internal/backoff",
		In:      "Backoff.nextPause",
		From:    "min(time.Duration(mostSeconds)*time.Second, steadyPause)",
		To:      "min(time.Duration(mostSeconds)*time.Hour, LongestPause)",
		Package: guarantees,
		Test:    "TestB26ARecoveredServerIsFollowedWithinSeconds",
		Fault:   "After an outage of 50 s the cache is stale for another 50 s.",
	},
	{
		Name:    "has-no-quick-retries",
		Guards:  []string{"B26"},
		Dir:     "internal/backoff",
		In:      "Backoff.nextPause",
		From:    "time.Duration(mostSeconds) * time.Second",
		To:      "time.Duration(mostSeconds) * time.Hour",
		Package: guarantees,
		Test:    "TestB26APausedSourceIsAskedAgainAtTheseTimes",
		Fault:   "After an outage of 3 s the cache is stale for another 1.5 s.",
	},
	{
		Name:    "restarts-a-list-after-a-failed-page",
		Guards:  []string{"B26"},
		In:      "listing.mayRepeatPage",
		From:    "failures < pageAttempts",
		To:      "failures < 1",
		Package: guarantees,
		Test:    "TestB26AFailedPageIsAskedForAgain",
		Fault:   "If half of the requests fail, a list of ten pages never completes.",
	},
	{
		Name:    "relists-after-a-reset-connection",
		Guards:  []string{"B26"},
		In:      "run.watchAction",
		From:    "return watchAgain",
		To:      "return watchThenList",
		Package: guarantees,
		Test:    "TestB26ResetConnectionsNeverCauseAList",
		Fault:   "A network that drops connections makes each mirror relist.",
	},
	{
		Name:    "always-resumes-a-cut-stream",
		Guards:  []string{"B26"},
		In:      "run.watchAction",
		From:    "failed.request && cause == CauseConnectionLost",
		To:      "cause == CauseConnectionLost",
		Package: guarantees,
		Test:    "TestB26AStreamThatIsAlwaysCutIsAnsweredByAList",
		Fault: "If a proxy cuts each stream at a certain event, the cache stays at the " +
			"state before it.",
	},
	{
		Name:    "counts-watches-that-worked-as-failures",
		Guards:  []string{"B27"},
		Dir:     "internal/backoff",
		In:      "Watch.Worked",
		From:    "w.Lived >= workingWatch || w.Advanced",
		To:      "w.Lived >= 2*time.Minute",
		Package: guarantees,
		Test:    "TestB27IdleWatchesThatAreCutAreResumedAtOnce",
		Fault: "Behind a load balancer that cuts idle watches the cache is without a watch " +
			"for most of an hour.",
	},
	{
		Name:    "never-lists-after-empty-watches",
		Guards:  []string{"B28"},
		In:      "emptyWatches.record",
		From:    "e.count >= emptyWatchesBeforeList && !now.Before(e.nextList())",
		To:      "false",
		Package: guarantees,
		Test:    "TestB28AForgottenVersionIsAnsweredByAList",
		Fault:   "If a server answers a forgotten version with nothing, the cache is stale for good.",
	},
	{
		Name:    "treats-a-replay-as-a-regression",
		Guards:  []string{"B31"},
		In:      "openWatch.skipReplay",
		From:    "!w.isReplay(c, refused)",
		To:      "true",
		Package: guarantees,
		Test:    "TestB31AReplayOfAListedStateIsSkipped",
		Fault:   "A server whose lists are behind their items receives a full list every minute.",
	},
	{
		Name:    "accepts-a-list-without-a-version",
		Guards:  []string{"B32"},
		In:      "listing.setVersion",
		From:    `version == "" && l.version == "" && l.progress.versioned`,
		To:      "false",
		Package: guarantees,
		Test:    "TestB32AListWithoutAVersionFails",
		Fault:   "A proxy's odd response empties the cache for good, without a failure.",
	},
}
