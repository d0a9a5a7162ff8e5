package cache

// heldAside is what a list that is prepared aside has put into a quarantine, by key,
// so that it can be taken back. Its owner guards the two. The zero value is ready.
type heldAside map[string]heldChange

// heldChange is what was held under a key before, if known, and since.
type heldChange struct {
	before, since Quarantined
	known         bool
}

// add holds a key back, and remembers what was held before.
func (h *heldAside) add(q *quarantine, e *ObjectError) { h.addKept(q, e, withoutStack(e.Err)) }

// addKept is add for a cause that has been made fit to be kept.
func (h *heldAside) addKept(q *quarantine, e *ObjectError, kept error) {
	change, again := (*h)[e.Key]
	if !again {
		change.before, change.known = q.held.all[e.Key]
	}
	q.addKept(e, kept)
	change.since = q.held.all[e.Key]
	if *h == nil {
		*h = heldAside{}
	}
	(*h)[e.Key] = change
}

// undo makes the quarantine what it was, but where something has happened since.
func (h *heldAside) undo(q *quarantine) {
	for key, change := range *h {
		now, held := q.held.all[key]
		switch {
		case !held || now.ResourceVersion != change.since.ResourceVersion || now.Stage != change.since.Stage:
		case change.known:
			q.put(key, change.before)
		default:
			q.forget(key)
		}
	}
	q.ebb()
	*h = nil
}
