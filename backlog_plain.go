package cache

import (
	"time"

	"github.com/watchmirror/cache/internal/table"
)

// plainQueue is what waits as it is: the log from a cursor on, and, before one of its
// records, what a store held at that moment. The zero value has nothing.
type plainQueue struct {
	logCursor
	snapshot *pendingSnapshot
}

// pendingSnapshot is what is told to one handler alone: the initial list of one that joined
// late, or a resync. It is read as it is told, so that it costs no copy, but what has
// changed in the store since.
type pendingSnapshot struct {
	table *table.Snapshot
	// before is the number of the record that follows it.
	before uint64
	// at is the place of the entry that is next, left how many are to be told.
	at   uint32
	left int
	// without are those that are left out.
	without map[table.Key]bool
	// notification is what they have in common.
	notification
	// ends is true if the end of the list follows.
	ends bool
}

// add puts a snapshot behind all that waits. The caller holds the log's mu, and there is
// no other one.
func (p *plainQueue) add(s *pendingSnapshot) {
	s.before = p.log.end.Load()
	s.left = s.table.Len()
	for key := range s.without {
		if _, exists := s.table.Get(key); exists {
			s.left--
		}
	}
	if s.left > 0 || s.ends {
		p.snapshot = s
	}
}

// len is how much is to be popped, changes how many changes of that.
func (p *plainQueue) len() int {
	n := p.logCursor.len()
	if s := p.snapshot; s != nil {
		if n += s.left; s.ends {
			n++
		}
	}
	return n
}

func (p *plainQueue) changes() int {
	n := p.logCursor.len() - p.endsAhead()
	if s := p.snapshot; s != nil {
		n += s.left
	}
	return n
}

// pop takes out the first, of which there must be one. timed says that it is to say since
// when it has waited; the caller holds the log's mu then.
func (p *plainQueue) pop(timed bool) (n notification) {
	if p.snapshot != nil && p.next >= p.snapshot.before {
		return p.popSnapshot()
	}
	if n = p.read(); timed {
		n.since = p.since()
	}
	return n
}

func (p *plainQueue) popSnapshot() (n notification) {
	s := p.snapshot
	if n.kind = endOfList; s.left > 0 {
		n = s.next()
	} else {
		s.ends = false
	}
	if s.left == 0 && !s.ends {
		p.snapshot = nil
	}
	return n
}

func (s *pendingSnapshot) next() (n notification) {
	for {
		e, after, _ := s.table.From(s.at)
		s.at = after
		if key := e.Key(); !s.without[key] {
			n = s.notification
			n.key, n.obj = key, e.Object()
			s.left--
			return n
		}
	}
}

// oldest is since when the first change has waited. The caller holds the log's mu.
func (p *plainQueue) oldest() (since time.Time, waits bool) {
	at := *p
	for at.changes() > 0 {
		if s := at.snapshot; s != nil && at.next >= s.before {
			if s.left > 0 {
				return s.notification.since, true
			}
			at.snapshot = nil
			continue
		}
		if at.read().kind != endOfList {
			return at.since(), true
		}
	}
	return time.Time{}, false
}
