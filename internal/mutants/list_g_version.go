package mutants

// The applied version: G11.
var versionMutants = []Mutant{
	{
		Name: "records-an-events-version-before-its-write", Guards: []string{"G11"}, File: "intake.go",
		From:  "\t\tif err := in.prepare(ctx, &changes[i]); err != nil {\n\t\t\treturn 0, err\n",
		To:    "\t\tin.Bookmark(changes[i].version)\n\t\tif err := in.prepare(ctx, &changes[i]); err != nil {\n\t\t\treturn 0, err\n",
		Test:  "TestNoFunctionOfTheUsersSeesAVersionBeforeItsObject",
		Fault: "A reader that waited for the version of its own write reads the state before it.",
	},
	{
		Name: "claims-a-version-once-it-is-queued", Guards: []string{"G11"}, File: "delta_fifo_pop.go",
		From:  "\tif l.version = version; ",
		To:    "\tif l.version, l.processed = version, version; ",
		Test:  "TestAVersionHoldsOnceAllBeforeItIsProcessed",
		Fault: "A controller's applied version is ahead of its content.",
	},
	{
		Name: "ignores-namespaces-without-a-version", Guards: []string{"G11"}, File: "store.go",
		From:    "\t\tversions = append(versions, cmp.Or(*view.version.Load(), *whole))\n",
		To:      "\t\tif version := cmp.Or(*view.version.Load(), *whole); version != \"\" {\n\t\t\tversions = append(versions, version)\n\t\t}\n",
		Package: guarantees,
		Test:    "TestG11AStoreWithViewsClaimsTheLowestVersion",
		Fault:   "The store of several namespaces claims a version before one of them has been listed.",
	},
}
