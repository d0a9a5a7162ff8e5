package guarantees

// What today's ways in do otherwise than docs/intake.md says. Each is a variant of the model, so
// that the table fails where one disappears as well as where there is another.

type intakeDifference string

const (
	// The reflector keeps what could not be decoded in a table of its own, which no store or queue asks.
	intakeUnknown   intakeDifference = "a quarantined state that could not be decoded does not count as the last received"
	intakeUnchanged intakeDifference = "a list with the stored state releases a quarantined one that the store has not refused, and applies nothing"
	// There are up to four tables.
	intakeManyTables intakeDifference = "the status shows the quarantined state of the highest version, not the last"
	// A queue cannot tell what its consumer has refused from what it has processed.
	intakeFinal intakeDifference = "the final state of an object that was only quarantined is transformed"
)

// hasDifference says whether the model is to follow a difference.
func (m *intakeModel) hasDifference(d intakeDifference) bool { return m.way.openDifferences[d] }

// consumes says whether a consumer of the user's takes the changes out of a queue.
func (w *intakeWay) consumes() bool { return w.process || w.direct != nil && w.handler }

func (w *intakeWay) refusal() string {
	if w.process {
		return "process"
	}
	return "index"
}

// differences are those that a way still has.
func (w *intakeWay) differences() map[intakeDifference]bool {
	if w.foreign {
		return nil
	}
	today := map[intakeDifference]bool{intakeUnknown: true, intakeManyTables: true, intakeUnchanged: true}
	if w.handler && !w.batches && !w.isInformer {
		today[intakeFinal] = true
	}
	return today
}
