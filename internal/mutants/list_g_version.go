package mutants

// The applied version: G11.
var versionMutants = []Mutant{
	{
		Name:   "records-an-events-version-before-its-write",
		Guards: []string{"G11"},
		In:     "intake.acceptChanges",
		From:   "in.prepare(ctx, &changes[i])",
		To: `
			func() error {
				in.store.Bookmark(changes[i].received.version)
				return in.prepare(ctx, &changes[i])
			}()`,
		Test:  "TestNoFunctionOfTheUsersSeesAVersionBeforeItsObject",
		Fault: "A reader that waited for the version of its own write reads the state before it.",
	},
	{
		Name:   "claims-a-version-once-it-is-queued",
		Guards: []string{"G11"},
		Dir:    "internal/deltalog",
		In:     "Log.AddVersion",
		From:   "l.version = version",
		To:     "l.version, l.processed = version, version",
		Test:   "TestAVersionHoldsOnceAllBeforeItIsProcessed",
		Fault:  "A controller's applied version is ahead of its content.",
	},
	{
		Name:    "ignores-namespaces-without-a-version",
		Guards:  []string{"G11"},
		In:      "storage.lowest",
		From:    "!hasWhole && views < len(s.views)",
		To:      "false",
		Package: guarantees,
		Test:    "TestG11AStoreWithViewsClaimsTheLowestVersion",
		Fault: "The store of several namespaces claims a version before one of them has " +
			"been listed.",
	},
}
