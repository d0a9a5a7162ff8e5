package cache

// deltaLog holds what a DeltaFIFO has taken in, in the order in which it came,
// until it has been processed. It is plain data: its owner guards it.
//
// A record is pending, then handed out, then passed. Batches are handed out from
// the front; Pop takes all records of one key, so it leaves gaps:
//
//	     head                                            next to come
//	      ▼                                                   ▼
//	... │ A1 │ B1 │ A2 │ (version 7) │ C1, version 8 │ A3 │
//	      └─────────▶└───────────────────────────────▶┘         one key's chain
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
	passed int
	// items are the pending changes by key.
	items map[string]chain
	// pending counts the records that have not been handed out.
	pending int

	// version is the last one that was told, holds the last one that was passed.
	version, holds string
	// initial counts the records of the first list that have not been passed,
	// parts those that end a part.
	initial, parts int
	// most is how many keys items has had since it was made: a map keeps the
	// memory of its best days.
	most int
}

// record is one entry of the log: a change, a version, or both. One without a
// key is a version that was told alone.
type record struct {
	change
	version string
	// next is the sequence number of the next pending record of the same key;
	// none for the last one.
	next int
	// initial is true if the record came before the first list had ended.
	initial bool
	// partEnd is true for the last record of a part of a replacement.
	partEnd bool
	// out is true once the record has been handed out.
	out bool
}

// chain is the first and the last pending record of a key, by sequence number.
type chain struct{ first, last int }

// none is the sequence number of no record.
const none = -1

// keptCapacity is up to how many records the log keeps the memory it has, however
// few it needs: about 100 kB, so that an ordinary day does not allocate at all.
const keptCapacity = 1024

// at returns the record with a sequence number: its place among all records since
// the log was made. The pointer is good until the next append.
func (l *deltaLog) at(sequence int) *record { return &l.records[sequence-l.passed+l.head] }

// end is the sequence number of the next record.
func (l *deltaLog) end() int { return l.passed + len(l.records) - l.head }

// newest returns the newest pending change of a key.
func (l *deltaLog) newest(key string) (change, bool) {
	c, queued := l.items[key]
	if !queued {
		return change{}, false
	}
	return l.at(c.last).change, true
}

// pendingKeys are the keys of pending changes, in the order in which Pop would
// take them.
func (l *deltaLog) pendingKeys() []string {
	keys := make([]string, 0, len(l.items))
	for at := l.passed; at < l.end(); at++ {
		key := l.at(at).key
		if c, queued := l.items[key]; queued && c.first == at {
			keys = append(keys, key)
		}
	}
	return keys
}

// add appends a change, or merges it into the one before it of the same key.
func (l *deltaLog) add(c change, initial bool) {
	chained, queued := l.items[c.key]
	if queued {
		last := l.at(chained.last)
		if merged, ok := mergeDeletion(last.change, c); ok {
			last.change = merged
			return
		}
		last.next = l.end()
	} else {
		chained.first = l.end()
	}
	chained.last = l.end()
	l.push(record{change: c, next: none, initial: initial})
	l.put(c.key, chained)
}

func (l *deltaLog) put(key string, c chain) {
	if l.items == nil {
		l.items = map[string]chain{}
	}
	l.items[key] = c
	l.most = max(l.most, len(l.items))
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
		if last := l.at(l.end() - 1); !last.out {
			last.version = version
			return
		}
	}
	l.push(record{version: version, next: none, initial: initial})
}

func (l *deltaLog) push(r record) {
	if len(l.records) == cap(l.records) && l.head > len(l.records)/2 {
		left := copy(l.records, l.records[l.head:])
		clear(l.records[left:])
		l.records, l.head = l.records[:left], 0
	}
	l.records = append(l.records, r)
	l.pending++
	if r.initial {
		l.initial++
	}
}

// endPart makes the last record the end of a part. The caller has just added it.
func (l *deltaLog) endPart() {
	l.at(l.end() - 1).partEnd = true
	l.parts++
}

// handout is what the consumer was given: which records, and what they hold.
type handout struct {
	sequences []int
	changes   []change
	// version is the newest one among the records, and the gaps between them,
	// of a batch.
	version string
	// initial is true if they belong to the first list.
	initial bool
}

// deltas are the changes without what is only the library's, with room for some
// more.
func (out handout) deltas(more int) []Delta {
	deltas := make([]Delta, 0, len(out.changes)+more)
	for _, c := range out.changes {
		deltas = append(deltas, c.Delta)
	}
	return deltas
}

// takeKey hands out everything of the key that has waited longest. There must be
// a change pending.
func (l *deltaLog) takeKey() (out handout) {
	at := l.passed
	for l.at(at).out || l.at(at).key == "" {
		at++
	}
	for at != none {
		r := l.at(at)
		l.takeOut(at, &out)
		at = r.next
	}
	return out
}

// takeBatch hands out what is pending in the order in which it came, up to the
// end of the first list if the first record belongs to that; with onePerKey, up
// to the second change of a key. Something must be pending.
func (l *deltaLog) takeBatch(onePerKey bool) (out handout) {
	var met map[string]bool
	if onePerKey {
		// How far this gets is not known: with a key that changes again and
		// again it is one change of many.
		met = map[string]bool{}
	} else {
		out.sequences = make([]int, 0, l.pending)
		out.changes = make([]change, 0, l.pending)
	}
	for at := l.passed; at < l.end(); at++ {
		r := l.at(at)
		if !r.out {
			if len(out.sequences) == 0 {
				out.initial = r.initial
			}
			if r.initial != out.initial || met[r.key] {
				break
			}
			if onePerKey && r.key != "" {
				met[r.key] = true
			}
			l.takeOut(at, &out)
		}
		if r.version != "" {
			out.version = r.version
		}
	}
	return out
}

// takeOut hands out one record, which is the first of its key.
func (l *deltaLog) takeOut(at int, out *handout) {
	r := l.at(at)
	r.out = true
	l.pending--
	out.sequences = append(out.sequences, at)
	if r.key == "" {
		return
	}
	out.changes = append(out.changes, r.change)
	if r.next == none {
		delete(l.items, r.key)
	} else {
		l.items[r.key] = chain{first: r.next, last: l.items[r.key].last}
	}
}

// putBack makes records pending again that were handed out and not processed.
// Later changes of their keys follow them.
func (l *deltaLog) putBack(sequences []int) {
	for i := len(sequences) - 1; i >= 0; i-- {
		at := sequences[i]
		r := l.at(at)
		r.out = false
		l.pending++
		if r.key == "" {
			continue
		}
		later, queued := l.items[r.key]
		if !queued {
			later = chain{first: none, last: at}
		}
		r.next = later.first
		l.put(r.key, chain{first: at, last: later.last})
	}
}

// forget lets go of the objects of records that have been processed.
func (l *deltaLog) forget(sequences []int) {
	for _, at := range sequences {
		r := l.at(at)
		r.Object, r.received = nil, Received{}
	}
}

// pass moves the head past what has been processed, which must be all that was
// handed out. alone is true if versions that were told alone need not be handed
// out first.
func (l *deltaLog) pass(alone bool) {
	for l.head < len(l.records) {
		r := &l.records[l.head]
		if !r.out {
			if r.key != "" || !alone {
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
		*r = record{}
		l.head++
		l.passed++
	}
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
	if l.most > keptCapacity && l.most >= 4*len(l.items) {
		items := make(map[string]chain, 2*len(l.items))
		for key, c := range l.items {
			items[key] = c
		}
		l.items, l.most = items, len(l.items)
	}
}

// frontIsVersion is true if what would be handed out next is a version that was
// told alone.
func (l *deltaLog) frontIsVersion() bool {
	return l.head < len(l.records) && !l.records[l.head].out && l.records[l.head].key == ""
}
