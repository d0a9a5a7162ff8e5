package mutants

// reportingFaults: errors on the stream (B5).
var reportingFaults = []Mutant{
	{
		Name:    "does-not-report-stream-errors",
		Guards:  []string{"B5", "G12"},
		File:    "retry.go",
		From:    "\tm.reportFailure(m.ctx, err)\n\treturn m.pause(next, f)\n",
		To:      "\tif m.setLastFailure(err, true); request || activity != PhaseWatching {\n\t\tm.options.ErrorHandler(m.ctx, m.Reflector, err)\n\t}\n\treturn m.pause(next, f)\n",
		Package: guarantees,
		Test:    "TestB5AnErrorOnTheStreamReachesTheHandlerAtOnce",
		Fault:   "The error handler never receives errors that a server sends on an open watch.",
	},
	{
		Name:    "drops-the-error-of-a-streaming-list",
		Guards:  []string{"B5", "G12"},
		File:    "watch.go",
		From:    "\tsent := m.collect(w)\n",
		To:      "\tsent := m.collect(w)\n\tif sent != nil && w.listing != nil {\n\t\tsent = errNoInitialEventsEnd\n\t}\n",
		Package: guarantees,
		Test:    "TestG12EveryFailureIsReportedOnceWithItsCause",
		Fault:   "The error of a server that ends a streaming list halfway is never reported.",
	},
	{
		Name:    "drops-an-error-after-the-event-that-ends-a-watch",
		Guards:  []string{"G12"},
		File:    "watch.go",
		From:    "\t\tm.report(m.ctx, sent)\n",
		To:      "",
		Package: guarantees,
		Test:    "TestG12AnErrorBehindTheEventThatEndsAWatchIsReported",
		Fault:   "A server's error right after an event that cannot be applied is lost.",
	},
	{
		Name:    "treats-a-cut-stream-as-closed",
		Guards:  []string{"B5"},
		File:    "kubeapi/watch.go",
		From:    "if err == io.EOF || w.response.ctx.Err() != nil {",
		To:      "if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) || w.response.ctx.Err() != nil {",
		Package: "./kubeapi",
		Test:    "TestABrokenWatchEndsWithAnErrorEventThatSaysHow",
		Fault:   "A network that cuts every watch looks like a server that closes them, and no failure is reported.",
	},
}
