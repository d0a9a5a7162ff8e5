package cache

import (
	"maps"
	"time"
)

// backlog is what one handler still has to hear, oldest first. It is plain data: its
// owner guards it. The zero value is an Ordered one.
//
//	     head                                        next to come
//	      ▼                                               ▼
//	... │ Add A │ Add B │ (told) │ Update C │ end of list │
//
// While it merges, byKey says where the one entry of each key is, and what is told of a
// key goes there, whatever came in between: an entry keeps its place, so the end of the
// list keeps its own among them. An entry that has come to nothing is left as a hole
// until there are more holes than entries.
type backlog struct {
	delivery Delivery
	entries  []notification
	// head is the place of the oldest entry, and taken how many have been taken out
	// since the backlog was made: place = sequence - taken + head.
	head, taken int
	// byKey has the sequence number of each key's entry while changes are merged; nil
	// while they are not.
	byKey map[string]int
	// most is how many keys byKey has had since it was made.
	most int
	// holes counts the entries that are nothing any more, ends the ends of the list.
	holes, ends int
}

// mergeLimit is how many changes of an Ordered backlog may wait before they are merged.
func mergeLimit(live int) int { return max(1024, 2*live) }

// keptNotifications is up to how many entries an empty backlog keeps the memory for:
// about 6 kB, so that a quiet day does not allocate.
const keptNotifications = 64

// len is how many changes wait.
func (b *backlog) len() int { return len(b.entries) - b.head - b.holes - b.ends }

// merges says whether changes are merged at the moment.
func (b *backlog) merges() bool { return b.byKey != nil }

// add appends what a handler is to be told, or merges it into what it has not been
// told yet. live is how many keys the store has.
func (b *backlog) add(n notification, live int) {
	if b.delivery == Coalesced || b.delivery == Ordered && b.len() >= mergeLimit(live) {
		b.beginMerging()
	}
	b.insert(n)
	switch {
	case b.holes == 0:
	case !b.hasNext():
		b.shrink() // nobody will take anything out, and it has caught up
	case b.holes > keptNotifications && b.holes > b.len():
		b.rebuild()
	}
}

func (b *backlog) insert(n notification) {
	if !b.merges() || n.kind == endOfList {
		b.append(n)
		return
	}
	if sequence, waits := b.byKey[n.key]; waits {
		b.merge(sequence, n)
		return
	}
	b.byKey[n.key] = b.taken + len(b.entries) - b.head
	b.most = max(b.most, len(b.byKey))
	b.append(n)
}

func (b *backlog) append(n notification) {
	if len(b.entries) == cap(b.entries) && b.head > len(b.entries)/2 {
		left := copy(b.entries, b.entries[b.head:])
		clear(b.entries[left:])
		b.entries, b.head = b.entries[:left], 0
	}
	b.entries = append(b.entries, n)
	if n.kind == endOfList {
		b.ends++
	}
}

func (b *backlog) merge(sequence int, n notification) {
	at := &b.entries[sequence-b.taken+b.head]
	*at = at.then(n)
	if at.kind == told {
		delete(b.byKey, n.key)
		b.holes++
	}
}

// beginMerging merges what waits, and has everything merged from then on.
func (b *backlog) beginMerging() {
	if b.merges() {
		return
	}
	b.byKey = map[string]int{}
	b.rebuild()
}

// rebuild inserts all entries anew, without the holes, and merges them.
func (b *backlog) rebuild() {
	old := b.entries[b.head:]
	if len(old) == 0 {
		return
	}
	b.entries, b.head, b.holes, b.ends, b.most = nil, 0, 0, 0, 0
	b.byKey = make(map[string]int, min(len(old), 2*len(b.byKey)+1))
	for _, n := range old {
		if n.kind != told {
			b.insert(n)
		}
	}
}

// take takes out the oldest entry; ok is false if there is none.
func (b *backlog) take() (n notification, ok bool) {
	for b.head < len(b.entries) {
		n = b.entries[b.head]
		b.entries[b.head] = notification{}
		b.head++
		b.taken++
		switch {
		case n.kind == told:
			b.holes--
			continue
		case n.kind == endOfList:
			b.ends--
		case b.merges():
			delete(b.byKey, n.key)
		}
		b.shrink()
		return n, true
	}
	b.shrink()
	return notification{}, false
}

// hasNext says whether take has something to take out.
func (b *backlog) hasNext() bool { return len(b.entries)-b.head > b.holes }

// waiting are the keys of which something waits.
func (b *backlog) waiting() map[string]bool {
	if b.len() == 0 {
		return nil
	}
	keys := make(map[string]bool, b.len())
	for _, n := range b.entries[b.head:] {
		if n.kind != told {
			keys[n.key] = true
		}
	}
	return keys
}

// oldest is since when the oldest change has waited; false if none does.
func (b *backlog) oldest() (time.Time, bool) {
	for _, n := range b.entries[b.head:] {
		if n.kind != told && n.kind != endOfList {
			return n.since, true
		}
	}
	return time.Time{}, false
}

// drop forgets everything.
func (b *backlog) drop() { *b = backlog{delivery: b.delivery} }

// shrink ends merging once it has caught up, and gives memory back: more than four
// times what is needed is not kept, and what is kept then is twice that, so that
// shrinking costs a constant for each entry that has come and gone.
func (b *backlog) shrink() {
	if !b.hasNext() {
		b.taken += len(b.entries) - b.head
		clear(b.entries[b.head:])
		b.entries, b.head, b.holes = b.entries[:0], 0, 0
		if b.delivery == Ordered {
			b.byKey, b.most = nil, 0
		}
	}
	left := len(b.entries) - b.head
	if cap(b.entries) > keptNotifications && cap(b.entries) >= 4*left {
		entries := make([]notification, left, 2*left)
		copy(entries, b.entries[b.head:])
		b.entries, b.head = entries, 0
	}
	if b.most > keptNotifications && b.most >= 4*len(b.byKey) {
		byKey := make(map[string]int, 2*len(b.byKey))
		maps.Copy(byKey, b.byKey)
		b.byKey, b.most = byKey, len(b.byKey)
	}
}
