package mutants

// How a run ends: G9.
var lifecycleMutants = []Mutant{
	{
		Name:   "finishes-a-pause-before-it-stops",
		Guards: []string{"G9"},
		In:     "run.pauseUntil",
		From:   "timer := m.clock.NewTimer(pause)",
		To: `
			<-m.clock.After(pause)
			timer := m.clock.NewTimer(0)`,
		Package: guarantees,
		Test:    "TestG9RunReturnsAtOnceInEveryPhase",
		Fault:   "A process that stops while its server is down hangs for up to a minute.",
	},
	{
		Name:   "returns-while-a-source-call-hangs",
		Guards: []string{"G9"},
		In:     "Reflector.reportSlow",
		From:   "r.report(ctx, &SlowSourceError{Op: op, Waited: slowSource})",
		To: `
			r.report(ctx, &SlowSourceError{Op: op, Waited: slowSource})
			c.done = make(chan struct{})
			close(c.done)`,
		Package: guarantees,
		Test:    "TestG9ASourceThatIgnoresItsContextIsWaitedForAndReported",
		Fault: "Run returns while a call of its source still runs, on a goroutine without " +
			"an owner.",
	},
	{
		Name:    "does-not-report-a-hanging-source",
		Guards:  []string{"G9"},
		In:      "Reflector.reportSlow",
		From:    "r.report(ctx, &SlowSourceError{Op: op, Waited: slowSource})",
		To:      "",
		Package: guarantees,
		Test:    "TestG9ASourceThatIgnoresItsContextIsWaitedForAndReported",
		Fault:   "A process hangs when it stops, and the cause is not reported.",
	},
	{
		Name:    "returns-while-a-handler-runs",
		Guards:  []string{"G9"},
		In:      "sharedIndexInformer.run",
		From:    "defer goroutines.Wait()",
		To:      "",
		Package: guarantees,
		Test:    "TestG9RunWaitsForTheHandlersRunningCallsAndDropsTheRest",
		Fault:   "A program closes a resource of its handler while the handler still runs.",
	},
	{
		Name:    "lets-one-namespace-hold-up-the-panic-of-another",
		Guards:  []string{"G9"},
		Dir:     "internal/tasks",
		In:      "Group.recover",
		From:    "time.AfterFunc(crashAfter, func() { panic(g.panicked) })",
		To:      "time.NewTimer(crashAfter)",
		Package: guarantees,
		Test:    "TestAPanicEndsTheProcessThoughRunWaitsForWhatHangs",
		Fault: "A handler has panicked, and the process continues without it while the " +
			"source of another namespace hangs.",
	},
	{
		Name:    "stops-a-watch-without-waiting-for-its-connection",
		Guards:  []string{"G9"},
		Dir:     "kubeapi",
		In:      "watcher.Stop",
		From:    "<-w.done",
		To:      "",
		Package: "./kubeapi",
		Test:    "TestStopWaitsUntilTheBodyIsClosed",
		Fault:   "A mirror that has stopped still holds connections to the API server.",
	},
}
