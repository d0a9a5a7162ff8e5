package eventlog

import (
	"maps"
	"sync/atomic"
)

// backlog is a queue of records that merges those of one key. A merged record keeps the position of
// its oldest part. Call reset before the first use.
type backlog[K comparable] struct {
	// byKey has the entry of each key: every entry except an End.
	byKey map[K]*entry[K]
	// changes is the number of keys, for readers without the lock.
	changes atomic.Int64
	// root is part of the ring of entries: the oldest is next, the newest is previous.
	root entry[K]
	// maxKeys is the largest number of keys that the map has had. A map never shrinks.
	maxKeys int
}

type entry[K comparable] struct {
	Record[K]
	// position is the cursor's after it read the record.
	position       uint64
	previous, next *entry[K]
}

// keptKeys is the number of keys up to which a map is not replaced by a smaller one.
const keptKeys = 64

// reset drops all records and their memory.
func (b *backlog[K]) reset() {
	b.byKey = map[K]*entry[K]{}
	b.maxKeys = 0
	b.changes.Store(0)
	b.root.previous = &b.root
	b.root.next = &b.root
}

// oldest returns the entry that has waited longest, or nil.
func (b *backlog[K]) oldest() *entry[K] {
	if b.root.next == &b.root {
		return nil
	}
	return b.root.next
}

// add merges a record into the entry of its key, or appends it. An End is never merged. position is
// the cursor's after the record.
func (b *backlog[K]) add(r *Record[K], position uint64) {
	if r.Kind == End {
		b.append(r, position)
		return
	}
	waiting := b.byKey[r.Key]
	if waiting != nil {
		merge(&waiting.Record, r)
		if waiting.Kind == None {
			b.remove(waiting, r.Key)
		}
		return
	}
	b.byKey[r.Key] = b.append(r, position)
	b.changes.Add(1)
	b.maxKeys = max(b.maxKeys, len(b.byKey))
}

// append adds an entry at the end of the ring.
func (b *backlog[K]) append(r *Record[K], position uint64) *entry[K] {
	newest := b.root.previous
	added := &entry[K]{
		Record:   *r,
		position: position,
		previous: newest,
		next:     &b.root,
	}
	newest.next = added
	b.root.previous = added
	return added
}

// pop removes the oldest record and stores it in r. It returns false if there is none.
func (b *backlog[K]) pop(r *Record[K]) bool {
	e := b.oldest()
	if e == nil {
		return false
	}
	*r = e.Record
	b.remove(e, r.Key)
	return true
}

func (b *backlog[K]) remove(e *entry[K], key K) {
	e.previous.next = e.next
	e.next.previous = e.previous
	if e.Kind == End {
		return
	}
	b.changes.Add(-1)
	delete(b.byKey, key)
	if b.maxKeys > keptKeys && len(b.byKey) <= b.maxKeys/8 {
		b.byKey = maps.Collect(maps.All(b.byKey)) // the memory of the largest backlog
		b.maxKeys = len(b.byKey)
	}
}
