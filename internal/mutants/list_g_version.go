package mutants

// What the applied version claims: G11.
var versionMutants = []Mutant{
	{
		Name: "records-an-events-version-before-its-write", Guards: []string{"G11"}, File: "store_pipeline.go",
		From: `	w := k.storage.begin(0, one.all[:]...)
	w.take(&one.staged)
	w.commit(func() { k.scope.advance(e.version) })
`,
		To: `	k.advance(e.version)
	k.storage.write(one)
`,
		Test:  "TestNoFunctionOfTheUsersSeesAVersionBeforeItsObject",
		Fault: "A reader that waited for its own write's version reads the state before it.",
	},
	{
		Name: "records-a-batchs-version-before-its-write", Guards: []string{"G11"}, File: "store_pipeline.go",
		From: `	m := k.storage
	w := m.begin(0, all...)
`,
		To: `	m := k.storage
	k.advance(b.version)
	w := m.begin(0, all...)
`,
		Test:  "TestNoFunctionOfTheUsersSeesAVersionBeforeItsObject",
		Fault: "A reader that waited for its own write's version reads the state before it.",
	},
	{
		Name: "says-a-version-holds-when-it-is-queued", Guards: []string{"G11"}, File: "delta_log.go",
		From:  "\tl.version = version\n\tif l.end() > l.passed {\n",
		To:    "\tl.version, l.holds = version, version\n\tif l.end() > l.passed {\n",
		Test:  "TestAVersionHoldsOnceAllBeforeItIsProcessed",
		Fault: "The version that a controller says it has processed runs ahead of what it has.",
	},
	{
		Name: "leaves-a-namespace-without-a-version-out", Guards: []string{"G11"}, File: "view_versions.go",
		From:    "if whole == \"\" && v.none > 0 {",
		To:      "if whole == \"\" && v.none > 0 && len(v.ordered) == 0 {",
		Package: guarantees,
		Test:    "TestG11AStoreWithViewsClaimsTheLowestVersion",
		Fault:   "The store of several namespaces claims a version while one of them has not been listed yet.",
	},
}
