package mutants

// pausingFaults: streaming lists and watches that fail, and pauses (B1-B4, B26).
var pausingFaults = []Mutant{
	{
		Name:    "forgets-how-many-streams-have-failed",
		Guards:  []string{"B1"},
		In:      "run.streamFailed",
		From:    "m.progress.streamFailures++",
		To:      "m.progress.streamFailures = 1",
		Package: guarantees,
		Test:    "TestB1ASilentStreamIsFollowedByOnePauseAndOneList",
		Fault: "If a server cuts each streaming list, no list is ever requested and the " +
			"cache stays empty.",
	},
	{
		Name:    "streams-again-after-a-silent-stream",
		Guards:  []string{"B1"},
		In:      "run.streamFailed",
		From:    "m.progress.streamFailures >= streamAttempts || silent",
		To:      "m.progress.streamFailures >= streamAttempts",
		Package: guarantees,
		Test:    "TestB1ASilentStreamIsFollowedByOnePauseAndOneList",
		Fault: "If the final bookmark of a streaming list is lost, the cache is empty for " +
			"20 s or more.",
	},
	{
		Name:    "uses-the-watch-timeout-for-a-stream-response",
		Guards:  []string{"B1"},
		In:      "run.open",
		From:    "phase, limit = PhaseStreaming, streamQuiet",
		To:      "phase = PhaseStreaming",
		Package: guarantees,
		Test:    "TestB1AStreamWithoutAResponseIsAbandonedAfterTenSeconds",
		Fault: "A server that never answers a streaming list keeps the cache empty for ten " +
			"minutes.",
	},
	{
		Name:   "streams-again-every-second-after-expired",
		Guards: []string{"B2", "G13"},
		In:     "run.streamFailed",
		From:   "m.progress.streamFailures++",
		To: `
			if CauseOf(err) == CauseExpired {
				m.progress.versionInvalid = true
				m.reportFailure(m.ctx, err)
				<-m.clock.After(time.Second)
				return stateList
			}
			m.progress.streamFailures++`,
		Package: guarantees,
		Test:    "TestB2AStreamingListThatIsExpiredIsNotHammered",
		Fault:   "A streaming list that is answered with expired is requested sixty times a minute.",
	},
	{
		Name:   "does-not-count-an-expired-stream-as-an-attempt",
		Guards: []string{"B2"},
		In:     "run.streamFailed",
		From:   "m.progress.streamFailures++",
		To: `
			if CauseOf(err) != CauseExpired {
				m.progress.streamFailures++
			}`,
		Package: guarantees,
		Test:    "TestB2AStreamingListThatIsAlwaysRefusedFallsBackToAList",
		Fault: "If each streaming list is answered with expired, no list is ever requested " +
			"and the cache stays empty.",
	},
	{
		Name:    "treats-a-watch-with-an-event-as-healthy",
		Guards:  []string{"B3", "G13"},
		In:      "run.watchState",
		From:    "lived < shortWatch",
		To:      "lived < shortWatch && w.version == w.from",
		Package: guarantees,
		Test:    "TestG13AWatchThatClosesAfterProgressIsFollowedSooner",
		Fault: "A proxy that closes each watch after its first event receives one request " +
			"for every event.",
	},
	{
		Name:    "counts-request-time-as-watch-lifetime",
		Guards:  []string{"B3"},
		In:      "run.watchState",
		From:    "since := w.answeredAt",
		To:      "since := w.requestedAt",
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
		From:    "l.progress.streamFailures = 0",
		To:      "",
		Package: guarantees,
		Test:    "TestB1OnlyConsecutiveStreamFailuresCount",
		Fault:   "Two stream failures a month apart cause a list instead of a stream.",
	},
	{
		Name:    "counts-old-watch-failures",
		Guards:  []string{"B3"},
		In:      "Reflector.setAccepted",
		From:    "r.progress.version, r.progress.watchFailures = version, 0",
		To:      "r.progress.version = version",
		Package: guarantees,
		Test:    "TestB3WatchesThatDeliverEventsBeforeTheyBreakNeedNoList",
		Fault:   "Every fifth watch that a proxy cuts is followed by a full list.",
	},
	{
		Name:    "doubles-pauses-in-the-first-minute",
		Guards:  []string{"B26"},
		In:      "backoff.nextPause",
		From:    "min(b.current.Duration, time.Duration(mostSeconds)*time.Second, steadyPause)",
		To:      "min(b.current.Duration, time.Duration(mostSeconds)*time.Hour, longestPause)",
		Package: guarantees,
		Test:    "TestB26ARecoveredServerIsFollowedWithinSeconds",
		Fault:   "After an outage of 50 s the cache is stale for another 50 s.",
	},
	{
		Name:    "has-no-quick-retries",
		Guards:  []string{"B26"},
		In:      "backoff.nextPause",
		From:    "time.Duration(mostSeconds) * time.Second",
		To:      "time.Duration(mostSeconds) * time.Hour",
		Package: guarantees,
		Test:    "TestB26APausedSourceIsAskedAgainAtTheseTimes",
		Fault:   "After an outage of 3 s the cache is stale for another 1.5 s.",
	},
	{
		Name:    "restarts-a-list-after-a-failed-page",
		Guards:  []string{"B26"},
		In:      "listing.listPages",
		From:    "failures >= pageAttempts",
		To:      "failures >= 1",
		Package: guarantees,
		Test:    "TestB26AFailedPageIsAskedForAgain",
		Fault:   "If half of the requests fail, a list of ten pages never completes.",
	},
	{
		Name:    "relists-after-a-reset-connection",
		Guards:  []string{"B26"},
		In:      "run.afterFailedWatch",
		From:    "action = watchAgain",
		To:      "action = watchThenList",
		Package: guarantees,
		Test:    "TestB26ResetConnectionsNeverCauseAList",
		Fault:   "A network that drops connections makes each mirror relist.",
	},
	{
		Name:    "always-resumes-a-cut-stream",
		Guards:  []string{"B26"},
		In:      "run.afterFailedWatch",
		From:    "request && cause == CauseConnectionLost",
		To:      "cause == CauseConnectionLost",
		Package: guarantees,
		Test:    "TestB26AStreamThatIsAlwaysCutIsAnsweredByAList",
		Fault: "If a proxy cuts each stream at a certain event, the cache stays at the " +
			"state before it.",
	},
}
