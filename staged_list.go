package cache

import (
	"iter"

	"github.com/watchmirror/cache/internal/table"
)

// stagedList is writes in the order in which they are to be done, so that of two of one key
// the later counts. It has memory for some at a time.
//
// Nearly all of a list is ordinary: objects that say themselves what was received, with one
// value in each index. Of those it keeps what a table is given, and no staged.
type stagedList struct {
	m      *threadSafeMap
	blocks []stagedBlock
	// ordinary is how many of them are that, special how many are not.
	ordinary, special int
	// set is the indexers that their values were computed for; nil if none may be ordinary.
	set *indexerSet
	// room is for the next ones that are not, values for those of their indexes: one value
	// for each, of so many indexes as there were when the list began.
	room    []staged
	rooms   int
	values  valueSlab
	indexes int
	// numbers has the cells of which something is staged, as long as numbers say anything.
	numbers cellNumbers
	// byKey finds the last of a key that the table does not have; of each key, which then
	// is the only one, if complete.
	byKey    map[table.Key]*stagedEntry
	complete bool
}

// stagedEntry is one of the writes.
type stagedEntry struct {
	key table.Key
	// obj is what is to be under key, other all there is to know of a write that is not
	// ordinary. One that has neither is not to be written after all.
	obj   any
	other *staged
	// number is that of key's cell, if the table had it, else table.NoNumber.
	number uint32
	// mark is that of what was received of obj.
	mark uint32
}

// stagedBlock is some entries, in one piece of memory, which does not move.
type stagedBlock struct {
	entries []stagedEntry
	// texts are the values of the ordinary ones in each index, one after the other; those of
	// others are empty. There are none as long as there is no ordinary one.
	texts []string
}

// newStagedList makes a list that has ordinary ones, if it may.
func newStagedList(m *threadSafeMap, mayBeOrdinary bool) stagedList {
	set := m.indexers.Load()
	l := stagedList{m: m, numbers: newCellNumbers(m.table), indexes: len(set.names)}
	if mayBeOrdinary && len(set.builds) == 0 {
		l.set = set
	}
	return l
}

const (
	// stagedTogether is up to how many that are not ordinary are made at a time, some 20 kB.
	stagedTogether = 64
	// entriesTogether is up to how many entries are, some 18 kB and 4 kB for each index.
	entriesTogether = 256
)

// next is an empty one, to be prepared. It belongs to the list once last has been called,
// until then it may be given back.
func (l *stagedList) next() *staged {
	if len(l.room) == 0 {
		// One is enough if all are ordinary.
		l.rooms = min(max(1, 4*l.rooms), stagedTogether)
		l.room, l.values = make([]staged, l.rooms), newValueSlab(l.rooms, l.indexes)
	}
	next := &l.room[0]
	next.values = l.values.of(l.rooms - len(l.room))
	return next
}

func (l *stagedList) dropLast() { l.room[0] = staged{} }

// last takes the one that next has given out. number is that of its key's cell, if the
// table has that, and mark that of what was received.
func (l *stagedList) last(number uint32, known bool, mark uint32) {
	s := &l.room[0]
	e := stagedEntry{key: s.key, number: table.NoNumber, mark: mark}
	if known {
		e.number = number
	}
	if l.isOrdinary(s) {
		e.obj = s.obj
		l.ordinary++
	} else {
		e.other = s
		l.special++
	}
	to := l.append(e, s.values)
	if e.other == nil {
		l.dropLast()
	} else {
		l.room = l.room[1:]
	}
	if known && !l.complete {
		l.numbers.add(number)
		return
	}
	l.note(to)
}

func (l *stagedList) isOrdinary(s *staged) bool {
	if l.set == nil || s.set != l.set || !s.present || s.odd || s.err != nil {
		return false
	}
	for _, values := range s.values {
		if len(values) != 1 {
			return false
		}
	}
	return true
}

// append appends an entry, with its values if it is ordinary.
func (l *stagedList) append(e stagedEntry, values [][]string) *stagedEntry {
	if at := len(l.blocks) - 1; at < 0 || len(l.blocks[at].entries) == cap(l.blocks[at].entries) {
		size := 1
		if at >= 0 {
			size = min(4*cap(l.blocks[at].entries), entriesTogether)
		}
		l.blocks = append(l.blocks, stagedBlock{entries: make([]stagedEntry, 0, size)})
	}
	b := &l.blocks[len(l.blocks)-1]
	at := len(b.entries)
	b.entries = append(b.entries, e)
	if e.other == nil && l.indexes > 0 {
		if b.texts == nil {
			b.texts = make([]string, cap(b.entries)*l.indexes)
		}
		for i, texts := range values {
			b.texts[at*l.indexes+i] = texts[0]
		}
	}
	return &b.entries[at]
}

// each is all that is to be written, with the values of what is ordinary.
func (l *stagedList) each() iter.Seq2[*stagedEntry, []string] {
	return func(yield func(*stagedEntry, []string) bool) {
		for _, b := range l.blocks {
			for at := range b.entries {
				e := &b.entries[at]
				var values []string
				if b.texts != nil {
					values = b.texts[at*l.indexes : (at+1)*l.indexes]
				}
				if !e.isDropped() && !yield(e, values) {
					return
				}
			}
		}
	}
}

func (e *stagedEntry) isDropped() bool { return e.other == nil && e.obj == nil }

func (l *stagedList) dropEntry(e *stagedEntry) {
	switch {
	case e.other != nil:
		l.special--
	case e.obj != nil:
		l.ordinary--
	}
	e.obj, e.other = nil, nil
}

// is says whether it puts an object of which that was received, whose mark is known.
func (e *stagedEntry) is(received Received, mark uint32) bool {
	if e.other != nil {
		return e.other.present && e.other.received == received
	}
	return e.mark == mark && receivedOf(e.obj) == received
}

// find is the last of a key that is staged, nil if none is. number is that of its cell, if
// the table has that.
func (l *stagedList) find(key table.Key, number uint32, known bool) *stagedEntry {
	if known && !l.complete && !(l.numbers.valid() && !l.numbers.has(number)) {
		l.makeComplete()
	}
	if len(l.byKey) == 0 {
		return nil
	}
	return l.byKey[key] // also if known: it may have been unknown when it was staged
}

func (l *stagedList) makeComplete() {
	if l.complete {
		return
	}
	l.complete, l.byKey = true, make(map[table.Key]*stagedEntry, l.ordinary+l.special)
	for e := range l.each() {
		l.note(e)
	}
}

// note has a later one take the place of an earlier one.
func (l *stagedList) note(e *stagedEntry) {
	if l.byKey == nil {
		l.byKey = map[table.Key]*stagedEntry{}
	}
	if earlier := l.byKey[e.key]; earlier != nil {
		l.dropEntry(earlier)
	}
	l.byKey[e.key] = e
}

// drop takes out a key.
func (l *stagedList) drop(key table.Key) {
	l.makeComplete()
	if e := l.byKey[key]; e != nil {
		l.dropEntry(e)
		delete(l.byKey, key)
	}
}

// begin begins a write of everything, when all that is staged has its values for the
// indexers there are.
func (l *stagedList) begin() storeWrite {
	for {
		if l.set != l.m.indexers.Load() {
			l.makeWhole()
		}
		w := l.m.begin(wholeStore, l.others()...)
		if l.ordinary == 0 || l.set == l.m.indexers.Load() {
			return w
		}
		w.commit(nil) // indexers were added just now
	}
}

// others are those that are not ordinary.
func (l *stagedList) others() (others []*staged) {
	if l.special == 0 {
		return nil
	}
	others = make([]*staged, 0, l.special)
	for e := range l.each() {
		if e.other != nil {
			others = append(others, e.other)
		}
	}
	return others
}

// makeWhole makes all ordinary ones what they were: there are indexers that they have no
// values for.
func (l *stagedList) makeWhole() {
	for e, values := range l.each() {
		if e.other != nil {
			continue
		}
		s := &staged{key: e.key, obj: e.obj, present: true, set: l.set}
		for at := range values {
			s.values = append(s.values, values[at:at+1:at+1])
		}
		s.received = receivedOf(e.obj) // which it says itself
		e.obj, e.other = nil, s
		l.special++
	}
	l.set, l.ordinary = nil, 0
}

// take empties the list, in which nothing is ordinary.
func (l *stagedList) take() []*staged {
	all := l.others()
	*l = newStagedList(l.m, false)
	return all
}
