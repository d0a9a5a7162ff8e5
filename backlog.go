package cache

import "time"

// backlog is what one handler still has to hear, oldest first. It is plain data: its
// owner guards it. The zero value is an Ordered one.
//
//	merged                          │ plain
//	Add A │ Add B │ (told) │ end of │ Update C │ Update C │ Delete D
//	      │       │        │  list  │
//
// What comes goes into plain. While changes are merged, plain is absorbed from its front:
// an entry joins the one of its key in merged, if there is one, and follows the others
// otherwise. So an entry keeps the place of its oldest part, and the end of the list keeps
// its own. An entry that has come to nothing is a hole until there are more holes than
// entries; then merged becomes plain, to be absorbed anew.
//
// Each call absorbs a bounded number, so that a handler that falls behind holds nobody
// up: merging 200,000 entries at once takes a tenth of a second and more.
type backlog struct {
	delivery Delivery
	// merging is true while changes are merged; merged is empty otherwise.
	merging bool
	merged  notificationQueue
	plain   notificationQueue
	// byKey has the sequence number of each key's entry in merged. taken is how many
	// have been taken out of that: place = sequence - taken.
	byKey map[string]int
	taken int
	// most is how many keys byKey has had since it was made: a map keeps the memory of
	// its best days.
	most int
	// holes counts the entries of merged that are nothing any more, plainHoles those
	// of plain, ends the ends of the list in both.
	holes, plainHoles, ends int
}

// absorbed is how many entries an add may absorb: some 0.5 ms of map operations, and all
// that an ordinary backlog has when it begins to merge.
const absorbed = 2048

// keptHoles is up to how many holes, and keys that are gone from a map, are not worth
// the work.
const keptHoles = 64

// mergeLimit is how many changes of an Ordered backlog may wait before they are merged.
func mergeLimit(live int) int { return max(1024, 2*live) }

// len is how many changes wait.
func (b *backlog) len() int {
	return b.merged.len + b.plain.len - b.holes - b.plainHoles - b.ends
}

// hasNext says whether take has something to take out.
func (b *backlog) hasNext() bool { return b.len()+b.ends > 0 }

// add appends what a handler is to be told, or merges it into what it has not been
// told yet. live is how many keys the store has.
func (b *backlog) add(n notification, live int) {
	if b.delivery == Coalesced || b.delivery == Ordered && b.len() >= mergeLimit(live) {
		b.merging = true
	}
	b.plain.push(n)
	if n.kind == endOfList {
		b.ends++
	}
	if b.merging {
		b.absorb()
	}
}

// absorb merges some of plain.
func (b *backlog) absorb() {
	for range min(absorbed, b.plain.len) {
		n := b.plain.pop()
		switch n.kind {
		case told:
			b.plainHoles--
		case endOfList:
			b.merged.push(n)
		default:
			b.merge(n)
		}
	}
	switch {
	case !b.hasNext():
		b.caughtUp() // nobody will take anything out
	case b.plain.len == 0 && (tooMany(b.holes, b.len()) || tooMany(b.most-len(b.byKey), 3*len(b.byKey))):
		b.plain, b.plainHoles = b.merged, b.holes
		b.merged, b.holes, b.byKey, b.most = notificationQueue{}, 0, nil, 0
	}
}

// tooMany says whether so much waste is worth being cleared away, which costs a constant
// for each piece of it.
func tooMany(waste, useful int) bool { return waste > keptHoles && waste > useful }

func (b *backlog) merge(n notification) {
	sequence, waits := b.byKey[n.key]
	if !waits {
		if b.byKey == nil {
			b.byKey = map[string]int{}
		}
		b.byKey[n.key] = b.taken + b.merged.len
		b.most = max(b.most, len(b.byKey))
		b.merged.push(n)
		return
	}
	at := b.merged.at(sequence - b.taken)
	if *at = at.then(n); at.kind == told {
		delete(b.byKey, n.key)
		b.holes++
	}
}

// take takes out the oldest entry; ok is false if there is none.
func (b *backlog) take() (n notification, ok bool) {
	for b.merged.len > 0 && n.kind == told {
		n = b.merged.pop()
		b.taken++
		switch n.kind {
		case told:
			b.holes--
		case endOfList:
		default:
			delete(b.byKey, n.key)
		}
	}
	for b.plain.len > 0 && n.kind == told {
		if n = b.plain.pop(); n.kind == told {
			b.plainHoles--
		}
	}
	if n.kind == endOfList {
		b.ends--
	}
	if !b.hasNext() {
		b.caughtUp()
	}
	return n, n.kind != told
}

// caughtUp ends merging, and gives memory back.
func (b *backlog) caughtUp() {
	if b.delivery == Ordered {
		b.merging = false
	}
	for b.merged.len > 0 {
		b.merged.pop()
	}
	for b.plain.len > 0 {
		b.plain.pop()
	}
	b.holes, b.plainHoles = 0, 0
	if !b.merging || b.most > keptHoles {
		b.byKey, b.most = nil, 0
	}
}

// each calls f with what waits, the oldest first, from a place on, until it has looked at
// so many places; more is false if there are no more.
func (b *backlog) each(from, places int, f func(notification)) (more bool) {
	all := b.merged.len + b.plain.len
	for i := from; i < min(from+places, all); i++ {
		n := b.place(i)
		if n.kind != told && n.kind != endOfList {
			f(*n)
		}
	}
	return from+places < all
}

func (b *backlog) place(i int) *notification {
	if i < b.merged.len {
		return b.merged.at(i)
	}
	return b.plain.at(i - b.merged.len)
}

// oldest is since when the oldest change has waited; false if none does.
func (b *backlog) oldest() (since time.Time, waits bool) {
	for i := range b.merged.len + b.plain.len {
		if n := b.place(i); n.kind != told && n.kind != endOfList {
			return n.since, true
		}
	}
	return time.Time{}, false
}

// drop forgets everything.
func (b *backlog) drop() { *b = backlog{delivery: b.delivery} }
