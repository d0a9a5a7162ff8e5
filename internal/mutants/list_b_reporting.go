package mutants

// reportingFaults: errors on the stream (B5).
var reportingFaults = []Mutant{
	{
		Name:   "does-not-report-stream-errors",
		Guards: []string{"B5", "G12"},
		In:     "run.fail",
		From:   "m.reportFailure(failed.err, attempt.at)",
		To: `
			m.reflector.setSourceFailure(failed.err, attempt.at)
			if failed.request || failed.activity != PhaseWatching {
				m.reflector.options.ErrorHandler(m.ctx, m.reflector, failed.err)
			}`,
		Package: guarantees,
		Test:    "TestB5AnErrorOnTheStreamReachesTheHandlerAtOnce",
		Fault:   "The error handler never receives errors that a server sends on an open watch.",
	},
	{
		Name:   "drops-the-error-of-a-streaming-list",
		Guards: []string{"B5", "G12"},
		In:     "openWatch.applyBatch",
		From:   "sent := w.collect()",
		To: `
			sent := w.collect()
			if sent != nil && w.listing != nil {
				sent = errNoInitialEventsEnd
			}`,
		Package: guarantees,
		Test:    "TestG12EveryFailureIsReportedOnceWithItsCause",
		Fault:   "The error of a server that ends a streaming list halfway is never reported.",
	},
	{
		Name:    "drops-an-error-after-the-event-that-ends-a-watch",
		Guards:  []string{"G12"},
		In:      "openWatch.applyBatch",
		From:    "w.run.report(sent)",
		To:      "",
		Package: guarantees,
		Test:    "TestG12AnErrorBehindTheEventThatEndsAWatchIsReported",
		Fault:   "A server's error right after an event that cannot be applied is lost.",
	},
	{
		Name:    "treats-a-cut-stream-as-closed",
		Guards:  []string{"B5"},
		Dir:     "kubeapi",
		In:      "watcher.run",
		From:    "err == io.EOF",
		To:      "err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)",
		Package: "./kubeapi",
		Test:    "TestABrokenWatchEndsWithAnErrorEventThatSaysHow",
		Fault: "A network that cuts every watch looks like a server that closes them, and " +
			"no failure is reported.",
	},
}
