package eventlog

import "maps"

// backlog is a queue of records that merges those of one key. A merged record keeps the place of its
// oldest part. The zero value is empty.
type backlog[K comparable] struct {
	// byKey has the entries that are changes, which is all but an End.
	byKey map[K]*entry[K]
	// first and last are the ends of the list of entries.
	first, last *entry[K]
	// most is how many keys the map has had: a map never shrinks.
	most int
}

type entry[K comparable] struct {
	Record[K]
	previous, next *entry[K]
}

// keptKeys is up to how many keys a map is kept for, whatever is left in it.
const keptKeys = 64

// add merges a record with the one of its key, or appends it. An End is never merged.
func (b *backlog[K]) add(r *Record[K]) {
	if waiting := b.byKey[r.Key]; waiting != nil && r.Kind != End {
		if merge(&waiting.Record, r); waiting.Kind == None {
			b.remove(waiting, r.Key)
		}
		return
	}
	added := &entry[K]{Record: *r, previous: b.last}
	if b.last == nil {
		b.first = added
	} else {
		b.last.next = added
	}
	b.last = added
	if r.Kind == End {
		return
	}
	if b.byKey == nil {
		b.byKey = map[K]*entry[K]{}
	}
	b.byKey[r.Key] = added
	b.most = max(b.most, len(b.byKey))
}

// take removes the oldest record and stores it in r; it returns false if there is none.
func (b *backlog[K]) take(r *Record[K]) bool {
	if b.first == nil {
		return false
	}
	*r = b.first.Record
	b.remove(b.first, r.Key)
	return true
}

func (b *backlog[K]) remove(e *entry[K], key K) {
	if e.previous == nil {
		b.first = e.next
	} else {
		e.previous.next = e.next
	}
	if e.next == nil {
		b.last = e.previous
	} else {
		e.next.previous = e.previous
	}
	if e.Kind == End {
		return
	}
	if delete(b.byKey, key); b.most > keptKeys && len(b.byKey) <= b.most/8 {
		b.byKey, b.most = maps.Collect(maps.All(b.byKey)), len(b.byKey)
	}
}
