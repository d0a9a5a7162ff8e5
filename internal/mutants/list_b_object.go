package mutants

// objectFaults: objects that cannot be applied, transforms, and unchanged objects (B6-B8, B25).
var objectFaults = []Mutant{
	{
		Name:    "treats-a-list-of-wrong-types-as-empty",
		Guards:  []string{"B25", "G6"},
		In:      "listing.checkTypes",
		From:    "l.typeSeen",
		To:      "l.typeSeen || l.items > 0",
		Package: guarantees,
		Test:    "TestB25AListOfOnlyWrongTypesFails",
		Fault: "A source that answers with another type empties the cache, and controllers " +
			"act on that.",
	},
	{
		Name:   "ends-a-part-at-its-first-object-without-a-key",
		Guards: []string{"B6", "G6"},
		In:     "queueReplacement.stage",
		From:   "r.stageObject(obj)",
		To: `
			failed := len(r.failures)
			r.stageObject(obj)
			if len(r.failures) > failed && errors.As(r.failures[failed], new(KeyError)) {
				return nil
			}`,
		Package: guarantees,
		Test:    "TestB6AListWithBadObjectsIsQueuedWithoutThem",
		Fault: "One object without a name removes all objects after it in the list from " +
			"the cache.",
	},
	{
		Name:   "omits-undecodable-objects-from-a-list",
		Guards: []string{"B6"},
		Dir:    "kubeapi",
		In:     "listing.processItem",
		From:   "return l.passItem(item)",
		To: `
			if _, bad := item.(*UndecodableObject); bad {
				return nil
			}
			return l.passItem(item)`,
		Package: guarantees,
		Test:    "TestB6BytesThatCannotBeDecodedAreQuarantinedByName",
		Fault:   "An object that cannot be decoded is deleted from the cache without a report.",
	},
	{
		Name:   "treats-nil-from-a-transform-as-an-error",
		Guards: []string{"B7", "G14"},
		In:     "tryTransform",
		From:   "transform(obj)",
		To: `
			func() (any, error) {
				result, err := transform(obj)
				if err == nil && isNilPointer(result) {
					return nil, errNilObject
				}
				return result, err
			}()`,
		Package: guarantees,
		Test:    "TestB7ATransformHasOneOutcomeOnEveryPath",
		Fault: "Objects that a transform drops are quarantined, and stay in the cache if " +
			"they were stored.",
	},
	{
		Name:   "ignores-queued-states-of-listed-objects",
		Guards: []string{"B8"},
		In:     "stateAfter",
		From:   "last.origin = queued.Origin",
		To:     "",
		Test:   "TestARelistLeavesUnchangedObjectsAlone",
		Fault:  "A list that arrives while changes are queued delivers them a second time.",
	},
	{
		Name:   "treats-objects-without-a-uid-as-unchanged",
		Guards: []string{"B8"},
		Dir:    "internal/table",
		In:     "Origin.Same",
		From:   "o.uid&hasUID != 0 && o.uid&anyVersion != 0",
		To:     "o.uid&anyVersion != 0",
		Test:   "TestAnUnchangedObjectStaysThroughARelist",
		Fault: "A list does not deliver changed objects of a source that has no UIDs and " +
			"reuses versions.",
	},
	{
		Name:   "records-the-origin-after-the-transform",
		Guards: []string{"B8"},
		In:     "change.transform",
		From:   "p.object = out",
		To:     "p.object, p.origin = out, originOf(receivedOf(out))",
		Test:   "TestAnUnchangedObjectStaysThroughARelist",
		Fault: "With a transform that strips metadata each relist delivers every object " +
			"again, and no re-creation is noticed.",
	},
	{
		Name:    "accepts-a-truncated-list",
		Guards:  []string{"B6"},
		Dir:     "kubeapi/internal/jsonwire",
		In:      "list.Part",
		From:    "l.state != stateEnd",
		To:      "l.state == stateStart",
		Package: "./kubeapi/internal/jsonwire",
		Test:    "TestBrokenListsAreErrorsThatSayWhere",
		Fault: "A connection that breaks in the middle of a list deletes the rest of the " +
			"cache, which claims to be in sync.",
	},
	{
		Name:    "lets-a-transform-change-the-key",
		Guards:  []string{"B7"},
		In:      "callTransform",
		From:    "!key.Is(newKey)",
		To:      `newKey == ""`,
		Package: guarantees,
		Test:    "TestB7ATransformHasOneOutcomeOnEveryPath",
		Fault:   "An object that a transform renamed is not found when it is deleted.",
	},
}
