package eventlog

import (
	"maps"
	"sync/atomic"
)

// backlog is a queue of records that merges those of one key. A merged record keeps the position of its oldest part.
// Call reset before the first use.
type backlog[K comparable] struct {
	// byKey has the entry of each key, which is every entry except an End.
	byKey map[K]*entry[K]
	// changes is their number, for readers without the lock.
	changes atomic.Int64
	// root links the ends of the list: the entry after it is the oldest, the one before it the newest.
	root entry[K]
	// most is the largest number of keys that the map has had, since a map never shrinks.
	most int
}

type entry[K comparable] struct {
	Record[K]
	// after is the position of the cursor after it read the record.
	after          uint64
	previous, next *entry[K]
}

// keptKeys is the number of keys up to which a map is not replaced by a smaller one.
const keptKeys = 64

// reset drops all records and their memory.
func (b *backlog[K]) reset() {
	b.byKey, b.most = map[K]*entry[K]{}, 0
	b.changes.Store(0)
	b.root.previous, b.root.next = &b.root, &b.root
}

// add merges a record into the entry of its key, or appends it. after is the position after the record. An End is never
// merged.
func (b *backlog[K]) add(r *Record[K], after uint64) {
	if waiting := b.byKey[r.Key]; waiting != nil && r.Kind != End {
		if merge(&waiting.Record, r); waiting.Kind == None {
			b.remove(waiting, r.Key)
		}
		return
	}
	added := &entry[K]{Record: *r, after: after, previous: b.root.previous, next: &b.root}
	added.previous.next, b.root.previous = added, added
	if r.Kind != End {
		b.byKey[r.Key] = added
		b.changes.Add(1)
		b.most = max(b.most, len(b.byKey))
	}
}

// pop removes the oldest record and stores it in r. It returns false if there is none.
func (b *backlog[K]) pop(r *Record[K]) bool {
	e := b.root.next
	if e == &b.root {
		return false
	}
	*r = e.Record
	b.remove(e, r.Key)
	return true
}

func (b *backlog[K]) remove(e *entry[K], key K) {
	e.previous.next, e.next.previous = e.next, e.previous
	if e.Kind == End {
		return
	}
	b.changes.Add(-1)
	if delete(b.byKey, key); b.most > keptKeys && len(b.byKey) <= b.most/8 {
		b.byKey, b.most = maps.Collect(maps.All(b.byKey)), len(b.byKey)
	}
}
