package mutants

// handlerFaults: handlers that panic, handlers that are removed, concurrent runs (B9-B12).
var handlerFaults = []Mutant{
	{
		Name:   "never-counts-a-handler-that-panicked-as-synced",
		Guards: []string{"B9", "G5"},
		In:     "listener.deliver",
		From:   "l.synced.finish(nil)",
		To: `
			if l.panics.Load() > 0 {
				l.synced.finish(errHandlerPanicked)
			}
			l.synced.finish(nil)`,
		Package: guarantees,
		Test:    "TestB9AHandlerThatPanicsDuringTheInitialListStillSyncs",
		Fault: "A handler that panicked once never counts as synced, though it has " +
			"received the whole list.",
	},
	{
		Name:    "ignores-recover-panics",
		Guards:  []string{"B9"},
		In:      "listener.call",
		From:    "utilruntime.ReallyCrash && !l.options.RecoverPanics",
		To:      "utilruntime.ReallyCrash",
		Package: guarantees,
		Test:    "TestB9AHandlerThatPanicsDuringTheInitialListStillSyncs",
		Fault:   "RecoverPanics does nothing in a program that has not switched off ReallyCrash.",
	},
	{
		Name:    "waits-forever-for-a-handler-that-shuts-itself-down",
		Guards:  []string{"B10"},
		In:      "ShutDownEventHandler",
		From:    "time.After(shutDownLimit)",
		To:      "time.After(1000 * shutDownLimit)",
		Package: guarantees,
		Test:    "TestB10AHandlerIsRemovedInsideAHandlerDuringShutdown",
		Fault:   "A handler that shuts itself down waits for itself forever.",
	},
	{
		Name:    "shuts-a-handler-down-without-waiting-for-its-call",
		Guards:  []string{"B10"},
		In:      "ShutDownEventHandler",
		From:    "case <-own.finished:",
		To:      "default:",
		Package: guarantees,
		Test:    "TestB10ShutDownWaitsForTheRunningCall",
		Fault:   "A program closes a resource of its handler while the handler still runs.",
	},
	{
		Name:   "never-ends-a-wait-for-a-removed-handler",
		Guards: []string{"B11"},
		In:     "sharedIndexInformer.removeListener",
		From:   "l.synced.finish(reason)",
		To: `
			if reason != ErrHandlerRemoved {
				l.synced.finish(reason)
			}`,
		Package: guarantees,
		Test:    "TestB11WaitingForAHandlerThatIsRemovedEnds",
		Fault: "A wait for a handler that is removed before it has synced lasts until the " +
			"informer ends.",
	},
	{
		Name:   "says-that-a-removed-handler-has-synced",
		Guards: []string{"B11", "G5"},
		In:     "syncChecker.finish",
		From: `
			if err == nil {
				close(s.succeeded)
			}`,
		To:      "close(s.succeeded)",
		Package: guarantees,
		Test:    "TestB11WaitingForAHandlerThatIsRemovedEnds",
		Fault: "A program starts to use a handler that was removed before it had received " +
			"the list.",
	},
	{
		Name:   "refuses-a-second-run-silently",
		Guards: []string{"B12"},
		In:     "controller.RunWithContext",
		From: `
			c.reflector.report(
				ctx, fmt.Errorf("controller of %s: %w", c.reflector.name, ErrAlreadyRan),
			)`,
		To:      `_ = fmt.Errorf("controller of %s: %w", c.reflector.name, ErrAlreadyRan)`,
		Package: guarantees,
		Test:    "TestB12OfTwoConcurrentRunsOneReturnsAtOnce",
		Fault: "A controller that is run twice by mistake does nothing the second time, " +
			"and reports nothing.",
	},
}
