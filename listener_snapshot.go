package cache

import (
	"time"

	"k8s.io/utils/clock"
)

// A handler that is added to a running informer, and one that is due for a resync, is
// told what the store holds. That, and the place in the log where it belongs, is taken in
// one step, without anyone waiting, and read as it is told. The informer goes on
// meanwhile, which writes and then publishes: so the snapshot may have a write that is yet
// to be published. The store counts its writes for that.

// resyncBacklog is with how many changes waiting a resync begins: they are looked at under
// the lock of the log, for which the informer waits. A handler that is further behind has
// its resync when it is not.
const resyncBacklog = 1024

// join has a new listener told of a snapshot, and of what comes after it.
func (l *listener) join(now time.Time) {
	log := l.informer.log
	log.mu.Lock()
	defer log.mu.Unlock()
	s := l.informer.store.storage.table.Snapshot()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.joining = false
	if l.gone.Load() {
		return
	}
	if s.Writes > log.write {
		l.skips = s.Writes
	}
	l.backlog.plain.logCursor = log.cursorLocked()
	l.backlog.plain.add(&pendingSnapshot{
		table: s, notification: notification{kind: tellAdd, initial: true, since: now}, ends: log.ended,
	})
	l.noteLocked()
}

// skip leaves out a write that is being published, if the snapshot with which the listener
// joined has it. The caller holds the log's mu, and has appended the write.
func (l *listener) skip(write uint64) {
	if l.skips == 0 || write == 0 {
		return
	}
	if write >= l.skips {
		l.skips = 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone.Load() {
		return
	}
	log := l.informer.log
	l.backlog.plain.block, l.backlog.plain.next = log.last, log.last.from+uint64(log.used)
	l.noteLocked()
}

// beginResync has it told again of everything, as soon as that can be, and sets the timer
// anew.
func (l *listener) beginResync(due clock.Timer) {
	due.Reset(l.resync)
	l.due = true
}

// tryResync tells again what the store holds, if that is due: unless the last resync, or
// the initial list, is not over yet. It tries again later while a write is not published,
// or what was taken out ahead is not told, for to repeat a state that the handler is yet to be
// told would be to tell it out of turn, and while the handler is far behind.
func (l *listener) tryResync() {
	if !l.due || l.ahead.waiting() > 0 {
		return
	}
	now, log := l.informer.now(), l.informer.log
	log.mu.Lock()
	defer log.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.awaits.Store(false)
	if l.due = l.mayResync(); !l.due || l.backlog.len() > resyncBacklog {
		return
	}
	s := l.informer.store.storage.table.Snapshot()
	if s.Writes > log.write {
		l.awaits.Store(true)
		return
	}
	l.due = false
	p := &l.backlog.plain
	without := l.backlog.keys()
	for at := p.logCursor; at.len() > 0; {
		if n := at.read(); n.kind != endOfList {
			without[n.key] = true
		}
	}
	p.add(&pendingSnapshot{table: s, notification: notification{kind: tellResync, since: now}, without: without})
	l.noteLocked()
}

// mayResync is called with mu.
func (l *listener) mayResync() bool {
	return l.HasSynced() && l.backlog.plain.snapshot == nil && !l.gone.Load()
}

// resyncTimer is nil if there is no resync.
func (l *listener) resyncTimer() (due clock.Timer, stop func()) {
	if l.resync <= 0 {
		return nil, func() {}
	}
	due = l.informer.clock.NewTimer(l.resync)
	return due, func() { due.Stop() }
}
