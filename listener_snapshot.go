package cache

import (
	"slices"
	"time"

	"k8s.io/utils/clock"
)

// A handler that is added to a running informer, and one that is due for a resync, is
// told what the store holds. That is read in one step, without anyone waiting, while
// the informer goes on, which writes and then publishes. So the snapshot may have a write
// that is yet to be published; and what is published meanwhile is set aside, for only
// then can be said whether the snapshot has it. The store counts its writes for that.

// snapshot is what a store held after one of its writes.
type snapshot struct {
	write   uint64
	entries []*entry
}

// snapshotChunk is how many entries are added to a backlog, or looked at there, at a
// time, for the informer waits for its lock: some 100 us.
const snapshotChunk = 1024

// beginSnapshot has what is published from now on set aside, until endSnapshot.
func (l *listener) beginSnapshot() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setAside = true
}

// join has a new listener told of a snapshot, and of what came after it. synced says
// that the snapshot is all of the initial list.
func (l *listener) join(s snapshot, synced bool, now time.Time) {
	// Made without the lock: nobody looks into its backlog yet.
	joined := backlog{delivery: l.options.Delivery}
	for _, e := range s.entries {
		joined.add(notification{kind: tellAdd, key: e.key, obj: e.obj, initial: true, since: now}, len(s.entries))
	}
	if synced {
		joined.add(notification{kind: endOfList}, len(s.entries))
	}
	if l.begun(s.write, joined) {
		l.endSnapshot(len(s.entries))
	}
}

// begun gives a listener its first backlog; false if it has been removed meanwhile.
func (l *listener) begun(write uint64, joined backlog) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return false
	}
	l.heard, l.backlog = write, joined
	return true
}

// beginResync reads what is to be told again, and sets the timer anew.
func (l *listener) beginResync(due clock.Timer) {
	due.Reset(l.resync)
	if l.resyncing != nil || !l.HasSynced() {
		return
	}
	l.beginSnapshot()
	s := l.informer.store.storage.snapshotOfWrite()
	l.resyncing = &s
}

// endResync tells again what was read, as soon as everything has been published that
// goes before it. To repeat a state that the handler has not been told would be to tell
// it out of turn.
func (l *listener) endResync() {
	if l.resyncing == nil || !l.hasHeard(l.resyncing.write) {
		return
	}
	s := *l.resyncing
	l.resyncing = nil
	l.catchUp(s)
	l.repeat(s, l.waiting())
	l.endSnapshot(len(s.entries))
}

// hasHeard says whether a write, and so all before it, have been published to it.
func (l *listener) hasHeard(write uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard >= write || slices.ContainsFunc(l.aside, func(p publication) bool { return p.write >= write })
}

// catchUp adds what was set aside and the snapshot has: it goes before that.
func (l *listener) catchUp(s snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.aside = slices.DeleteFunc(l.aside, func(p publication) bool {
		if p.write > s.write {
			return false
		}
		l.hearLocked(p, len(s.entries))
		return true
	})
}

// waiting are the keys of which something waits: they are told of that, not resynced.
// Nobody else adds anything or takes anything out while it looks: what is published is
// set aside, and it is called by the one who takes out.
func (l *listener) waiting() map[string]bool {
	keys := map[string]bool{}
	for from, more := 0, true; more; from += snapshotChunk {
		l.mu.Lock()
		more = l.backlog.each(from, snapshotChunk, func(n notification) { keys[n.key] = true })
		l.mu.Unlock()
	}
	return keys
}

// repeat adds a resync of each entry of which nothing waits.
func (l *listener) repeat(s snapshot, waiting map[string]bool) {
	now := l.informer.now()
	chunk := make([]notification, 0, min(snapshotChunk, len(s.entries)))
	for entries := range slices.Chunk(s.entries, snapshotChunk) {
		chunk = chunk[:0]
		for _, e := range entries {
			if !waiting[e.key] {
				chunk = append(chunk, notification{kind: tellResync, key: e.key, obj: e.obj, since: now})
			}
		}
		l.mu.Lock()
		l.addLocked(chunk, len(s.entries))
		l.mu.Unlock()
	}
}

// endSnapshot adds what was set aside, some of it at a time, until nothing is left.
func (l *listener) endSnapshot(live int) {
	for l.endSome(live) {
	}
}

// endSome is true if more is left.
func (l *listener) endSome(live int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for added := 0; len(l.aside) > 0 && added < snapshotChunk; {
		next := l.aside[0]
		l.aside[0] = publication{}
		l.aside = l.aside[1:]
		added += len(next.notifications) + 1
		l.hearLocked(next, live)
	}
	if len(l.aside) > 0 {
		return true
	}
	l.aside, l.setAside = nil, false
	return false
}

// resyncTimer is nil if there is no resync.
func (l *listener) resyncTimer() (due clock.Timer, stop func()) {
	if l.resync <= 0 {
		return nil, func() {}
	}
	due = l.informer.clock.NewTimer(l.resync)
	return due, func() { due.Stop() }
}
