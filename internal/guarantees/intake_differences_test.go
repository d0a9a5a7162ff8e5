package guarantees

// The known differences of a way in from docs/intake.md. Each is a variant of the model, so the
// table fails if one disappears and if there is another.

type intakeDifference string

const (
	// The reflector has its own table of undecodable objects, which stores and queues do not read.
	intakeUnknown   intakeDifference = "a quarantined state that could not be decoded does not count as the last received"
	intakeUnchanged intakeDifference = "a list with the stored state releases a quarantined one that the store has not refused, and applies nothing"
	// There are up to four tables.
	intakeManyTables intakeDifference = "the status shows the quarantined state of the highest version, not the last"
	// A queue does not know which objects its consumer has refused.
	intakeFinal intakeDifference = "the final state of an object that was only quarantined is transformed"
)

// hasDifference says whether the way has a known difference.
func (m *intakeModel) hasDifference(d intakeDifference) bool { return m.way.openDifferences[d] }

// consumes says whether a user's consumer pops the changes from a queue.
func (w *intakeWay) consumes() bool { return w.process || w.direct != nil && w.handler }

func (w *intakeWay) refusal() string {
	if w.process {
		return "process"
	}
	return "index"
}

// differences returns the known differences of a way.
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
