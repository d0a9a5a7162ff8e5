package cache

import (
	"time"

	"github.com/watchmirror/cache/internal/table"
)

// backlog is what one handler still has to hear, oldest first. It is plain data: its
// owner guards it. The zero value is an Ordered one.
//
//	merged                          │ again   │ plain: the log from the cursor on, and a
//	Add A │ Add B │ (told) │ end of │ Update C │ snapshot before one of its records
//	      │       │        │  list  │
//
// What comes is in the log. While changes are merged, that is absorbed from its front:
// an entry joins the one of its key in merged, if there is one, and follows the others
// otherwise. So an entry keeps the place of its oldest part, and the end of the list keeps
// its own. An entry that has come to nothing is a hole until there are more holes than
// entries; then merged becomes again, to be absorbed anew.
//
// Each call absorbs a bounded number, so that a handler that falls behind holds nobody
// up: the informer waits for the call.
type backlog struct {
	delivery Delivery
	// merging is true while changes are merged; merged is empty otherwise.
	merging bool
	merged  notificationQueue
	again   notificationQueue
	plain   plainQueue
	// places has the sequence number of each key's entry in merged. taken is how many
	// have been taken out of that: place = sequence - taken.
	places mergedPlaces
	taken  int
	// holes counts the entries of merged that are nothing any more, againHoles those
	// of again, ends the ends of the list in both.
	holes, againHoles, ends int
}

const (
	// absorbed is how many entries an add to a large backlog absorbs, besides twice as many as
	// have come. The informer waits for that: as a rule none of them is in the processor's cache.
	absorbed = 256
	// ordinary is how many entries an add absorbs where no more than that wait, which is more
	// than an Ordered backlog of a store of 1,000 objects has when it begins to merge; and where
	// changes are always merged, and a large backlog is a snapshot that was told late.
	ordinary = 2048
)

// keptHoles is up to how many holes, and keys that are gone from a map, are not worth
// the work.
const keptHoles = 64

// mergeLimit is how many changes of an Ordered backlog may wait before they are merged.
func mergeLimit(live int) int { return max(1024, 2*live) }

// len is how many changes wait.
func (b *backlog) len() int {
	return b.merged.len + b.again.len - b.holes - b.againHoles - b.ends + b.plain.changes()
}

// hasNext says whether take has something to take out.
func (b *backlog) hasNext() bool {
	return b.merged.len-b.holes > 0 || b.again.len-b.againHoles > 0 || b.plain.len() > 0
}

// begins begins to merge, if that is due, and says so. live is how many keys the store has,
// and ahead how many changes wait that have been taken out.
func (b *backlog) begins(live, ahead int) bool {
	if b.merging || b.delivery == OrderedUnbounded || b.delivery == Ordered && ahead+b.len() <= mergeLimit(live) {
		return false
	}
	b.merging = true
	return true
}

// putBack puts what had been taken out before all that waits, of which nothing is merged yet.
func (b *backlog) putBack(taken []notification) {
	for i := range taken {
		b.again.push(taken[i])
	}
	clear(taken)
}

// grown looks after what has come, so many records. The caller holds the log's mu.
func (b *backlog) grown(records int) {
	switch {
	case !b.merging:
	case b.delivery == Coalesced || b.len() <= ordinary:
		b.absorb(ordinary + records)
	default:
		b.absorb(absorbed + 2*records)
	}
}

// absorb merges some of what is not merged.
func (b *backlog) absorb(most int) {
	for range min(most, b.again.len+b.plain.len()) {
		var n notification
		if b.again.len > 0 {
			if n = b.again.pop(); n.kind == endOfList {
				b.ends--
			}
		} else {
			n = b.plain.pop(true)
		}
		switch n.kind {
		case told:
			b.againHoles--
		case endOfList:
			b.ends++
			b.merged.push(n)
		default:
			b.merge(n)
		}
	}
	switch {
	case !b.hasNext():
		b.caughtUp() // nobody will take anything out
	case b.again.len+b.plain.len() == 0 && (tooMany(b.holes, b.len()) || tooMany(b.places.most-b.places.len(), 3*b.places.len())):
		b.again, b.againHoles = b.merged, b.holes
		b.merged, b.holes, b.places = notificationQueue{}, 0, mergedPlaces{}
	}
}

// tooMany says whether so much waste is worth being cleared away, which costs a constant
// for each piece of it.
func tooMany(waste, useful int) bool { return waste > keptHoles && waste > useful }

func (b *backlog) merge(n notification) {
	sequence, waits := b.places.find(n.key, b.keyAt)
	if !waits {
		b.places.put(n.key, b.taken+b.merged.len)
		b.merged.push(n)
		return
	}
	at := b.merged.at(sequence - b.taken)
	if *at = at.then(n); at.kind == told {
		b.places.remove(n.key, sequence)
		b.holes++
	}
}

// keyAt is the key of the entry of merged with a sequence number.
func (b *backlog) keyAt(sequence int) table.Key { return b.merged.at(sequence - b.taken).key }

// take takes out the oldest entry; ok is false if there is none.
func (b *backlog) take() (n notification, ok bool) {
	if b.merged.len > 0 || b.again.len > 0 {
		n = b.takeMerged()
	}
	if n.kind == told && b.plain.len() > 0 {
		n = b.plain.pop(false)
	}
	if (b.merging || b.merged.len > 0 || b.again.len > 0) && !b.hasNext() {
		b.caughtUp()
	}
	return n, n.kind != told
}

// takeSome takes out the oldest entries, and says how many: of those that wait in the log as
// they came as many as there is room for and are in one of its blocks, if each is told with one
// call. Any other comes alone.
func (b *backlog) takeSome(room []notification) (taken int) {
	if b.delivery == Coalesced || b.merging || b.merged.len > 0 || b.again.len > 0 || b.plain.snapshot != nil {
		var ok bool
		if room[0], ok = b.take(); ok {
			taken = 1
		}
		return taken
	}
	return b.plain.readSome(room)
}

// takeMerged takes out the oldest of what was merged once, if anything is left of that.
func (b *backlog) takeMerged() (n notification) {
	for b.merged.len > 0 && n.kind == told {
		n = b.merged.pop()
		b.taken++
		switch n.kind {
		case told:
			b.holes--
		case endOfList:
		default:
			b.places.remove(n.key, b.taken-1)
		}
	}
	for b.again.len > 0 && n.kind == told {
		if n = b.again.pop(); n.kind == told {
			b.againHoles--
		}
	}
	if n.kind == endOfList {
		b.ends--
	}
	return n
}

// caughtUp ends merging, and gives memory back.
func (b *backlog) caughtUp() {
	if b.delivery == Ordered {
		b.merging = false
	}
	for b.merged.len > 0 {
		b.merged.pop()
	}
	for b.again.len > 0 {
		b.again.pop()
	}
	b.holes, b.againHoles = 0, 0
	if !b.merging || b.places.most > keptHoles {
		b.places = mergedPlaces{}
	}
}

// keys are those of what waits and is not in the log.
func (b *backlog) keys() map[table.Key]bool {
	keys := map[table.Key]bool{}
	for _, q := range []*notificationQueue{&b.merged, &b.again} {
		for i := range q.len {
			if n := q.at(i); n.kind != told && n.kind != endOfList {
				keys[n.key] = true
			}
		}
	}
	return keys
}

// oldest is since when the oldest change has waited; false if none does. The caller holds
// the log's mu.
func (b *backlog) oldest() (since time.Time, waits bool) {
	for _, q := range []*notificationQueue{&b.merged, &b.again} {
		for i := range q.len {
			if n := q.at(i); n.kind != told && n.kind != endOfList {
				return n.since, true
			}
		}
	}
	return b.plain.oldest()
}

// drop forgets everything.
func (b *backlog) drop() { *b = backlog{delivery: b.delivery} }
