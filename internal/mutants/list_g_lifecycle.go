package mutants

// How a run ends: G9.
var lifecycleMutants = []Mutant{
	{
		Name: "finishes-a-pause-before-it-stops", Guards: []string{"G9"}, File: "reflector_run.go",
		From:    "\t\tfor m.wait(waitChannels{timer: timer.C()}).reason == wakeDone {",
		To:      "\t\t<-timer.C()\n\t\tfor m.check != nil && isClosed(m.check.done) {",
		Package: guarantees,
		Test:    "TestG9RunReturnsAtOnceInEveryPhase",
		Fault:   "A process that stops while its server is down hangs for up to a minute.",
	},
	{
		Name: "returns-while-a-source-call-hangs", Guards: []string{"G9"}, File: "listwatch.go",
		From:    "Waited: slowSource})\n\t\treturn true\n",
		To:      "Waited: slowSource})\n\t\tc.done = make(chan struct{})\n\t\tclose(c.done)\n\t\treturn true\n",
		Package: guarantees,
		Test:    "TestG9ASourceThatIgnoresItsContextIsWaitedForAndReported",
		Fault:   "Run returns while a call of its source still runs, on a goroutine without an owner.",
	},
	{
		Name: "does-not-report-a-hanging-source", Guards: []string{"G9"}, File: "listwatch.go",
		From:    "\t\tr.report(ctx, &SlowSourceError{Op: op, Waited: slowSource})\n",
		To:      "",
		Package: guarantees,
		Test:    "TestG9ASourceThatIgnoresItsContextIsWaitedForAndReported",
		Fault:   "A process hangs when it stops, and the cause is not reported.",
	},
	{
		Name: "returns-while-a-handler-runs", Guards: []string{"G9"}, File: "informer.go",
		From:    "\tdefer goroutines.Wait()\n",
		To:      "",
		Package: guarantees,
		Test:    "TestG9RunWaitsForTheHandlersRunningCallsAndDropsTheRest",
		Fault:   "A program closes a resource of its handler while the handler still runs.",
	},
	{
		Name: "lets-one-namespace-hold-up-the-panic-of-another", Guards: []string{"G9"}, File: "internal/tasks/tasks.go",
		From:    "time.AfterFunc(crashAfter, func() { panic(g.panicked) })",
		To:      "time.NewTimer(crashAfter)",
		Package: guarantees,
		Test:    "TestAPanicEndsTheProcessThoughRunWaitsForWhatHangs",
		Fault:   "A handler has panicked, and the process continues without it while the source of another namespace hangs.",
	},
	{
		Name: "stops-a-watch-without-waiting-for-its-connection", Guards: []string{"G9"}, File: "kubeapi/watch.go",
		From:    "\tw.response.cancel()\n\t<-w.done\n",
		To:      "\tw.response.cancel()\n",
		Package: "./kubeapi",
		Test:    "TestStopWaitsUntilTheBodyIsClosed",
		Fault:   "A mirror that has stopped still holds connections to the API server.",
	},
}
