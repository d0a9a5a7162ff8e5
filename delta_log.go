package cache

import (
	"math/bits"
	"slices"

	"github.com/watchmirror/cache/internal/table"
)

// deltaLog holds what a DeltaFIFO has taken in, in the order in which it came,
// until it has been processed. It is plain data: its owner guards it.
//
// A record is pending, then handed out, then processed, then passed. Batches are
// handed out from the front; Pop takes all records of one key, so it leaves gaps:
//
//	     head                                            next to come
//	      ▼                                                   ▼
//	... │ A1 │ B1 │ A2 │ (version 7) │ C1, version 8 │ A3 │
//	      ▲─────────┘▲────────────────────────────────┘         one key's chain
//
// The head passes a record when everything before it, and the record itself, has
// been processed; the version that the record bears then holds. That is why a
// version never gets ahead of an object that came before it, whatever order the
// keys are popped in.
//
// The zero value is ready.
type deltaLog struct {
	records []record
	// head is the place of the first record that has not been passed, and
	// passed how many have been since the log was made, those that no longer
	// have a place included. See at.
	head   int
	passed int64
	// table finds the newest record of a key, and keys is how many keys have a
	// pending change.
	table keyTable
	keys  int
	// pending counts the records that have not been handed out.
	pending int

	// version is the last one that was told, holds the last one that was passed.
	version, holds string
	// initial counts the records of the first list that have not been passed,
	// parts those that end a part.
	initial, parts int
}

// record is one entry of the log: a change, a version, or both. One without a
// key is a version that was told alone, or what Pop has done with.
type record struct {
	queued
	version string
	// prev is the sequence number of the record before it of the same key that
	// was pending when this one came; none if there was no such record. It still
	// is pending if it has not been passed: what is taken of a key is taken from
	// its first record on.
	prev int64
	// stage is how far the record has come.
	stage recordStage
	// more is true if a later record has this one as its prev.
	more bool
	// initial is true if the record came before the first list had ended.
	initial bool
	// partEnd is true for the last record of a part of a replacement.
	partEnd bool
}

// hasKey says whether there is a change.
func (r *record) hasKey() bool { return r.key != table.Key{} }

// recordStage is how far a record has come.
type recordStage uint8

const (
	pending recordStage = iota
	// handedOut: the consumer has it.
	handedOut
	// processed: the consumer is done with it, and something before it is pending.
	processed
)

// none is the sequence number of no record.
const none = -1

// keptCapacity is up to how many records the log keeps the memory it has, however
// few it needs: about 140 kB, so that an ordinary day does not allocate at all.
const keptCapacity = 1024

// at returns the record with a sequence number: its place among all records since
// the log was made. The pointer is good until the next append.
func (l *deltaLog) at(sequence int64) *record { return &l.records[int(sequence-l.passed)+l.head] }

// end is the sequence number of the next record.
func (l *deltaLog) end() int64 { return l.passed + int64(len(l.records)-l.head) }

// newest returns the newest record of a key that is pending or handed out, or nil.
func (l *deltaLog) newest(key table.Key) *record {
	if _, last := l.seek(key, hashOf(key)); last != none {
		return l.at(last)
	}
	return nil
}

// pendingKeys are the keys of pending changes, in the order in which Pop would
// take them.
func (l *deltaLog) pendingKeys() []string {
	keys := make([]string, 0, l.keys)
	for at := l.passed; at < l.end(); at++ {
		r := l.at(at)
		first := r.prev < l.passed || l.at(r.prev).stage != pending
		if first && r.stage == pending && r.hasKey() {
			keys = append(keys, r.key.String())
		}
	}
	return keys
}

// keysOut are the keys of what is handed out, sorted.
func (l *deltaLog) keysOut() (keys []string) {
	for at := l.passed; at < l.end(); at++ {
		if r := l.at(at); r.stage == handedOut && r.hasKey() {
			keys = append(keys, r.key.String())
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// add appends a change, or merges it into the one before it of the same key.
func (l *deltaLog) add(c *queued, initial bool) {
	l.makeRoom()
	hash := hashOf(c.key)
	place, last := l.seek(c.key, hash)
	if last != none && l.at(last).stage == pending {
		before := l.at(last)
		if merged, ok := mergeDeletion(before.queued, *c); ok {
			before.queued = merged
			return
		}
	}
	r := l.push(initial)
	r.queued = *c
	l.link(l.end()-1, place, hash, last)
}

// link puts a record behind the last one of its key, if that is pending, and has the
// table find it. place and last are what seek returned.
func (l *deltaLog) link(at int64, place int, hash uint32, last int64) {
	if last != none && l.at(last).stage == pending {
		l.at(last).more = true
		l.at(at).prev = last
	} else {
		l.keys++
	}
	l.table.set(place, hash, at)
}

// tell notes that version holds once everything so far has been processed. It
// sits on the last record if that is pending, so that the two are handed out
// together.
func (l *deltaLog) tell(version string, initial bool) {
	if version == "" || version == l.version {
		return
	}
	l.version = version
	if l.end() > l.passed {
		if last := l.at(l.end() - 1); last.stage == pending {
			last.version = version
			return
		}
	}
	l.push(initial).version = version
}

// push appends a record without content. What is behind the records is zero.
func (l *deltaLog) push(initial bool) *record {
	if len(l.records) == cap(l.records) {
		l.makeSpace()
	}
	l.records = l.records[:len(l.records)+1]
	l.pending++
	r := &l.records[len(l.records)-1]
	r.prev, r.initial = none, initial
	if initial {
		l.initial++
	}
	return r
}

// makeSpace makes space for another record: that of those that have been passed, if it is
// more than half, or as much again. The steps are powers of two, so that keptCapacity is
// one of them, and a queue that needs a little less keeps what it has.
func (l *deltaLog) makeSpace() {
	records := l.records
	left := len(records) - l.head
	if l.head <= left {
		records = make([]record, 2<<bits.Len(uint(max(left, 2)-1)))[:left]
	}
	copy(records, l.records[l.head:])
	clear(records[left:])
	l.records, l.head = records[:left], 0
}

// endPart makes the last record the end of a part. The caller has just added it.
func (l *deltaLog) endPart() {
	l.at(l.end() - 1).partEnd = true
	l.parts++
}

// putBack makes what is handed out pending again. Later changes of the same keys
// follow.
func (l *deltaLog) putBack() {
	for at := l.passed; at < l.end(); at++ {
		if r := l.at(at); r.stage == handedOut {
			r.stage = pending
			l.pending++
		}
	}
	l.relink()
}

// relink makes the chains and the table anew.
func (l *deltaLog) relink() {
	l.keys = 0
	clear(l.table.slots)
	l.table.empty(l.passed)
	for at := l.passed; at < l.end(); at++ {
		r := l.at(at)
		if r.stage == processed || !r.hasKey() {
			continue
		}
		r.prev, r.more = none, false
		l.makeRoom()
		hash := hashOf(r.key)
		place, last := l.seek(r.key, hash)
		l.link(at, place, hash, last)
	}
}

// forget notes that what was handed out has been processed, and lets go of its
// objects. A batch is passed next: nothing pending is before it.
func (l *deltaLog) forget(out handout) {
	if out.key == (table.Key{}) {
		return
	}
	at := out.last
	for range out.changes {
		r := l.at(at)
		r.stage = processed
		r.queued = queued{}
		at = r.prev
	}
}

// pass moves the head past what has been processed, which must be all that was
// handed out. alone is true if versions that were told alone need not be handed
// out first.
func (l *deltaLog) pass(alone bool) {
	at := l.head
	for ; at < len(l.records); at++ {
		r := &l.records[at]
		if r.stage == pending {
			if r.hasKey() || !alone {
				break
			}
			l.pending--
		}
		if r.version != "" {
			l.holds = r.version
		}
		if r.initial {
			l.initial--
		}
		if r.partEnd {
			l.parts--
		}
	}
	clear(l.records[l.head:at])
	l.passed += int64(at - l.head)
	l.head = at
	l.shrink()
}

// shrink gives memory back after a burst: more than four times what is needed is
// not kept. What is kept then is twice what is needed, so that shrinking costs a
// constant for each record that has come and gone.
func (l *deltaLog) shrink() {
	left := len(l.records) - l.head
	switch {
	case cap(l.records) > keptCapacity && cap(l.records) >= 4*left:
		records := make([]record, left, 2*left)
		copy(records, l.records[l.head:])
		l.records, l.head = records, 0
	case left == 0:
		l.records, l.head = l.records[:0], 0
	}
	if left == 0 {
		l.table.empty(l.passed)
	}
	if len(l.table.slots) > keptPlaces && len(l.table.slots) >= 4*placesFor(l.keys) {
		l.resize(placesFor(l.keys))
	}
}

// frontIsVersion is true if what would be handed out next is a version that was
// told alone.
func (l *deltaLog) frontIsVersion() bool {
	return l.head < len(l.records) && l.records[l.head].stage == pending && !l.records[l.head].hasKey()
}
