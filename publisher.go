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

// publish appends the applied changes of a write, under the store's lock. version is the store's
// before the write.
func (p *publisher) publish(changes []change, initial bool, version *string) {
	set := func(i int, n *notification) bool { return changes[i].notification(n, initial) }
	p.log.Append(len(changes), set, p.live(), p.began, version)
}

// notification is one change in the event log.
type notification = eventlog.Record[table.Key]

// notification sets n to the notification of a change, or returns false if the change was not
// applied.
func (c *change) notification(n *notification, initial bool) bool {
	if !c.applied {
		return false
	}
	*n = notification{Key: c.key, Initial: initial, Kind: eventlog.Update, Old: c.old, New: c.object}
	switch {
	case c.kind == Deleted:
		n.Kind = eventlog.Delete
	case !c.existed:
		n.Kind = eventlog.Add
	case c.recreated:
		n.Kind = eventlog.Recreate
	}
	return true
}
