// The last step of a write: its changes become records of an informer's event log. Which
// notification does a change become?

package cache

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
)

// publisher appends the changes of a store's writes to the event log of an informer, and measures
// the writes. Each feed has one.
type publisher struct {
	log     *eventlog.Log[table.Key]
	clock   clock.Clock
	metrics *informerMetrics
	// live returns the number of stored objects. listed is called after a whole list.
	live   func() int
	listed func()
	// hasListed is true once a list was committed. Only the reflector's goroutine uses it.
	hasListed bool
	// began is when the current write began. Only the reflector's goroutine uses it.
	began time.Time
}

// beginWrite records the start of a write, before the store's lock is held. It reports whether the
// write is measured until endWrite.
func (p *publisher) beginWrite(objects int) (measured bool) {
	p.began = p.clock.Now()
	measured = p.metrics.id.Reserved()
	if measured {
		set(p.metrics.queued, float64(objects))
	}
	return measured
}

// endWrite records the duration of a measured write.
func (p *publisher) endWrite() {
	if p.metrics.id.Reserved() {
		observe(p.metrics.latency, p.clock.Since(p.began).Seconds())
		set(p.metrics.queued, 0)
	}
}

// publish appends the applied changes of a write, under the store's lock: the log has the order of
// the writes. Readers see the changes already, so that a handler which reads the store finds at
// least the state that it was called with. version is the store's before the write.
func (p *publisher) publish(changes []change, initial bool, version *string) {
	set := func(i int, n *notification) bool { return changes[i].notification(n, initial) }
	p.log.Append(len(changes), set, p.live(), p.began, version)
}

// notification is one change in the event log.
type notification = eventlog.Record[table.Key]

// notification sets n to the notification of a change, or returns false if the change was not
// applied.
func (c *change) notification(n *notification, initial bool) bool {
	if !c.result.applied {
		return false
	}
	*n = notification{
		Key:     c.prepared.key,
		Initial: initial,
		Kind:    c.notificationKind(),
		Old:     c.result.old,
		New:     c.prepared.object,
	}
	if n.Kind == eventlog.Delete {
		n.New = c.finalState()
	}
	return true
}

func (c *change) notificationKind() eventlog.Kind {
	if c.prepared.deletes {
		return eventlog.Delete
	}
	if !c.result.existed {
		return eventlog.Add
	}
	if c.result.recreated {
		return eventlog.Recreate
	}
	return eventlog.Update
}

// finalState returns what handlers receive for a deletion: the final state or, if it is not known
// or they have not received the state before it, a tombstone of the last stored state.
func (c *change) finalState() any {
	p := &c.prepared
	if p.object != nil && !c.result.wasQuarantined {
		return p.object
	}
	return DeletedFinalStateUnknown{Key: p.key.String(), Obj: c.result.old}
}
