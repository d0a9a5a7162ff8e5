package mutants

// objectFaults: objects that cannot be taken, transforms, and objects that have not
// changed (B6-B8, B25).
var objectFaults = []Mutant{
	{
		Name: "takes-a-list-of-nothing-but-wrong-types-for-an-empty-one", Guards: []string{"B25", "G6"}, File: "list.go",
		From:    "\tif in.failsByType() {\n\t\tfirst :=",
		To:      "\tif in.failsByType() && in.items == 0 {\n\t\tfirst :=",
		Package: guarantees,
		Test:    "TestB25AListOfNothingButWrongTypesIsAFailedList",
		Fault:   "A controller whose source answers with another type deletes everything that it does not find.",
	},
	{
		Name:   "ends-a-part-at-its-first-object-without-a-key",
		Guards: []string{"B6", "G6"},
		File:   "delta_fifo_replacement.go",
		From: `			refused = append(refused, refusal{obj, rejection(obj, err)})
			continue
`,
		To: `			refused = append(refused, refusal{obj, rejection(obj, err)})
			break
`,
		Package: guarantees,
		Test:    "TestB6AListWithBadObjectsIsQueuedWithoutThem",
		Fault:   "One object without a name empties the cache of all that the list has behind it.",
	},
	{
		Name:    "leaves-out-of-a-list-what-cannot-be-decoded",
		Guards:  []string{"B6"},
		File:    "kubeapi/list.go",
		From:    "	return l.pass(item)\n",
		To:      "	if _, bad := item.(*UndecodedObject); bad {\n		return nil\n	}\n	return l.pass(item)\n",
		Package: guarantees,
		Test:    "TestB6BytesThatCannotBeDecodedAreQuarantinedByName",
		Fault:   "An object that no decoder takes is deleted from the cache, and nobody learns why.",
	},
	{
		Name:    "takes-nil-from-a-transform-for-an-error",
		Guards:  []string{"B7", "G14"},
		File:    "errors.go",
		From:    "\tif out, err = transform(obj); err != nil || isNilPointer(out) {\n",
		To:      "\tif out, err = transform(obj); err == nil && isNilPointer(out) {\n\t\terr = ErrNilObject\n\t}\n\tif err != nil {\n",
		Package: guarantees,
		Test:    "TestB7ATransformHasOneOutcomeOnEveryPath",
		Fault:   "Objects that the program does not want fill the quarantine, and stay if they were there.",
	},
	{
		Name:   "compares-a-listed-object-with-the-stored-one-alone",
		Guards: []string{"B8"},
		File:   "delta_fifo_standing.go",
		From:   "	if newest, ok := f.newestLocked(key); ok {\n		return lastReceived{",
		To:     "	if newest, ok := f.newestLocked(key); ok && newest.Type == Deleted {\n		return lastReceived{",
		Test:   "TestARelistLeavesUnchangedObjectsAlone",
		Fault:  "A list that comes while much is queued delivers all of it a second time.",
	},
	{
		Name: "takes-objects-without-a-uid-for-one", Guards: []string{"B8"}, File: "internal/table/origin.go",
		From:  "return o.uid&hasUID != 0 && o.uid&(decimalVersion|otherVersion) != 0 && o == as",
		To:    "return o.uid&(decimalVersion|otherVersion) != 0 && o == as",
		Test:  "TestAnUnchangedObjectStaysThroughARelist",
		Fault: "A list does not deliver what a source without UIDs shows in another state under the same version.",
	},
	{
		Name: "records-what-a-transform-has-left-as-received", Guards: []string{"B8"}, File: "intake.go",
		From:  "\t\tif c.object = out; !keep {\n",
		To:    "\t\tif c.object, c.origin = out, originOf(receivedOf(out)); !keep {\n",
		Test:  "TestAnUnchangedObjectStaysThroughARelist",
		Fault: "With a transform that strips metadata each list delivers every object anew, and none counts as re-created.",
	},
	{
		Name: "records-what-a-queues-transform-has-left-as-received", Guards: []string{"B8"}, File: "store_consumer.go",
		From:  "origin: q.from(),",
		To:    "origin: originOf(receivedOf(q.Object)),",
		Test:  "TestARecreatedObjectIsSeenThroughATransformThatDropsItsUID",
		Fault: "A handler hears of an update where one object has gone and another has come.",
	},
	{
		Name:    "takes-a-list-that-was-cut-for-a-whole-one",
		Guards:  []string{"B6"},
		File:    "kubeapi/internal/jsonwire/list.go",
		From:    "if l.place != behindList {",
		To:      "if l.place == beforeList {",
		Package: "./kubeapi/internal/jsonwire",
		Test:    "TestBrokenListsAreErrorsThatSayWhere",
		Fault:   "A connection that breaks in the middle of a list deletes the rest of the cache, which says that it is in sync.",
	},
	{
		Name:    "lets-a-transform-change-the-key",
		Guards:  []string{"B7"},
		File:    "errors.go",
		From:    "\tcase !key.Is(is):\n",
		To:      "\tcase is == \"\":\n",
		Package: guarantees,
		Test:    "TestB7ATransformHasOneOutcomeOnEveryPath",
		Fault:   "An object that was renamed on its way in is never found again when it is to be deleted.",
	},
}
