package mutants

// versionFaults: versions that regress, and versions ahead of the content (B15, B16, B23).
var versionFaults = []Mutant{
	{
		Name:    "never-accepts-a-regressed-source",
		Guards:  []string{"B15", "G1"},
		In:      "run.recordVersionFailure",
		From:    `p.version = ""; p.versionInvalid = true`,
		To:      "",
		Package: guarantees,
		Test:    "TestB15ASourceThatRegressedForGoodIsAccepted",
		Fault:   "After a source has regressed permanently the cache never accepts its content.",
	},
	{
		Name:    "accepts-an-older-bookmark",
		Guards:  []string{"B15", "G11"},
		In:      "openWatch.applyBookmark",
		From:    "versionBefore(version, w.version)",
		To:      `version == "" && versionBefore(version, w.version)`,
		Package: guarantees,
		Test:    "TestB15ARegressionIsReportedAndAnsweredByAListAtTheNewest",
		Fault: "A server that has lost its newest state is not noticed, and the applied " +
			"version regresses.",
	},
	{
		Name:    "applies-an-event-older-than-the-stored-state",
		Guards:  []string{"B15", "G2"},
		In:      "storage.apply",
		From:    "s.newest(p.key, at.Origin)",
		To:      "table.Origin{}",
		Package: guarantees,
		Test:    "TestB15AnInformerNoticesAnOlderEventEvenIfAReaderModifiedTheObject",
		Fault: "An informer's handlers and readers see an object regress, and nothing is " +
			"reported.",
	},
	{
		Name:   "ignores-versions-of-directly-stored-objects",
		Guards: []string{"B15", "G2"},
		In:     "keyedStore.Update",
		From:   "_ = in.prepare(context.Background(), c)",
		To: `
			c.prepared.origin = table.Origin{}
			_ = in.prepare(context.Background(), c)`,
		Test:  "TestARegressionIsNotMistakenForABadObject",
		Fault: "An event that is older than the stored object is applied.",
	},
	{
		Name:   "advances-the-version-with-each-stored-object",
		Guards: []string{"B16", "G11"},
		In:     "keyedStore.Update",
		From:   "_ = in.prepare(context.Background(), c)",
		To: `
			_ = in.prepare(context.Background(), c)
			k.Bookmark(c.received.meta.received.ResourceVersion)`,
		Package: guarantees,
		Test:    "TestB16ASingleObjectDoesNotAdvanceTheVersion",
		Fault:   "The store claims the version of one object, without the changes before it.",
	},
	{
		Name:   "advances-the-version-past-a-refused-write",
		Guards: []string{"B16", "G11"},
		In:     "openWatch.skipReplay",
		From:   "return refused",
		To: `
			w.reflector.setAccepted(c.received.version, "event")
			return refused`,
		Package: guarantees,
		Test:    "TestB16ARefusedWriteDoesNotAdvanceTheVersion",
		Fault:   "The reflector claims a version that its store does not have.",
	},
	{
		Name:    "refuses-the-list-after-a-watch-regression",
		Guards:  []string{"B15"},
		In:      "run.recordVersionFailure",
		From:    `p.version = ""`,
		To:      "",
		Package: guarantees,
		Test:    "TestB15AWatchThatShowsARollbackIsAnsweredByOneAcceptedList",
		Fault: "A server that was restored from a backup is reported twice, and mirrored " +
			"only after a pause.",
	},
	{
		Name:    "counts-the-end-of-a-stream-as-a-bookmark",
		Guards:  []string{"B23"},
		In:      "openWatch.noteBookmark",
		From:    "w.listing != nil",
		To:      "false",
		Package: guarantees,
		Test:    "TestB23TheBookmarkThatEndsAStreamingListPromisesNoOther",
		Fault:   "A quiet source that sends no bookmarks is checked every three minutes.",
	},
	{
		Name:    "lists-at-the-newest-version-twice-after-a-410",
		Guards:  []string{"B15", "G1"},
		In:      "listing.setVersion",
		From:    "!l.progress.versionInvalid",
		To:      "!l.progress.versionInvalid || l.run.resync.listed",
		Package: guarantees,
		Test:    "TestG1AMirrorConvergesWithTheFirstListAfterA410AndARestore",
		Fault: "A source that returns restored is mirrored only after two pauses, up to " +
			"two minutes.",
	},
	{
		Name:    "forgets-the-newest-version-of-a-broken-stream",
		Guards:  []string{"B15", "G2"},
		In:      "openWatch.examine",
		From:    "w.listing.newest = newerOf(w.listing.newest, c.received.meta.received.ResourceVersion)",
		To:      "_ = w.listing.newest",
		Package: guarantees,
		Test:    "TestB15AStreamThatBrokeIsNotFollowedByAnOlderState",
		Fault: "After a broken streaming list a lagging replica restores objects that the " +
			"stream had deleted.",
	},
	{
		Name:    "lets-a-key-regress-in-a-stream",
		Guards:  []string{"B15", "G2"},
		In:      "listing.checkEvent",
		From:    "l.entries[c.prepared.key] = c.prepared.origin",
		To:      "",
		Package: guarantees,
		Test:    "TestB15InAStreamNoKeyRegresses",
		Fault:   "An object of a streaming list is replaced by an older state, without a report.",
	},
	{
		Name:    "never-checks-the-version-after-an-outage",
		Guards:  []string{"B23"},
		In:      "run.wantCheck",
		From:    "failed.worked == nil",
		To:      "failed.worked == nil && cause == causeRegression",
		Package: guarantees,
		Test:    "TestB23AServerRestoredFromAnOlderCopyIsMirrored",
		Fault: "After a restore from a backup the cache permanently shows objects that the " +
			"server has lost.",
	},
	{
		Name:    "ignores-late-watch-responses",
		Guards:  []string{"B23"},
		In:      "openWatch.recordResponse",
		From:    "w.answeredAt.Sub(w.requestedAt) >= lateAnswer",
		To:      "false",
		Package: guarantees,
		Test:    "TestB23AWatchThatWasAnsweredLateIsChecked",
		Fault: "If client-go's client hides an outage, a restore from a backup is not " +
			"noticed for minutes.",
	},
	{
		Name:    "never-checks-a-silent-watch",
		Guards:  []string{"B23"},
		In:      "openWatch.handleTimer",
		From:    "w.progress.checks.want()",
		To:      "",
		Package: guarantees,
		Test:    "TestB23ASilentWatchIsCheckedAfterThreeMinutes",
		Fault:   "A restore after a clean close is not noticed, though the bookmarks have stopped.",
	},
	{
		Name:    "restarts-the-silence-with-each-watch",
		Guards:  []string{"B23"},
		In:      "openWatch.silenceTime",
		From:    "w.progress.lastReceived.Add(maxSilence)",
		To:      "latest(w.answeredAt, w.progress.lastReceived).Add(maxSilence)",
		Package: guarantees,
		Test:    "TestB23TheSilenceOfSeveralWatchesIsChecked",
		Fault:   "A restore after a clean close is not noticed if watches end before three minutes.",
	},
	{
		Name:    "trusts-reissued-versions",
		Guards:  []string{"B23"},
		In:      "listing.mayReuseVersions",
		From:    `l.progress.version == "" || l.regression != nil || l.mayBeTooOld()`,
		To:      "l.mayBeTooOld()",
		Package: guarantees,
		Test:    "TestB23NoObjectCountsAsUnchangedAfterARestore",
		Fault: "An object that was changed after a restore keeps its old state, because " +
			"the version is the same.",
	},
}
