package cache

import (
	"context"
	"errors"
)

// The end of a list on its way into a queue: all of it becomes pending in one step, or
// it is given up.

// Commit ends the list. It does not wait. It fails if the replacement is over; any other
// error is an *ObjectError for each deleted object whose last state KnownObjects could not
// return: the list was taken all the same, and that object's tombstone is empty.
func (r *queueReplacement) Commit(_ context.Context, version string) error {
	if r.over {
		return errReplacementOver
	}
	return errors.Join(r.publish(version)...)
}

// publish queues what is not queued yet, the deletions of what was not listed,
// and the version, in one step. It returns an *ObjectError for each of those deletions
// whose last state could not be read.
func (r *queueReplacement) publish(version string) (unread []error) {
	f := r.queue
	defer r.drop()
	f.mu.Lock()
	defer f.unlock()
	r.queueLocked()
	if !r.lacksNothing {
		unread = r.queueDeletionsLocked()
	}
	for i := range r.refused {
		if a := &r.refused[i]; r.withheld.Has(a.failure.Key) {
			f.quarantine.add("", a.failure, a.kept)
		}
	}
	f.quarantine.releaseIf(func(key string) bool { return !r.withheld.Has(key) })
	f.log.tell(version, !f.populated)
	f.populated, f.listing, f.shown = true, false, nil
	return unread
}

// queueDeletionsLocked queues the deletions of what was not listed. The caller holds the
// queue's mu.
func (r *queueReplacement) queueDeletionsLocked() (unread []error) {
	deletions, unread := r.deletionsLocked()
	for i := range deletions {
		r.queue.log.add(&deletions[i], !r.queue.populated)
	}
	return unread
}

// Abort gives up: what is prepared is dropped, what is queued stays.
func (r *queueReplacement) Abort() {
	if r.visible && !r.over {
		r.keep()
	}
	r.drop()
}

// keep notes what a first list has shown before it is aborted.
func (r *queueReplacement) keep() {
	f := r.queue
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.populated {
		return
	}
	for key := range r.listed {
		f.shown.Insert(key)
	}
}

func (r *queueReplacement) drop() {
	r.over = true
	r.changes, r.before, r.fresh, r.listed, r.withheld, r.refused, r.absent = nil, nil, nil, nil, nil, nil, nil
}
