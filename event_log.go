package cache

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/watchmirror/cache/internal/table"
)

// eventLog is what an informer's handlers are to be told: once for all of them, in the
// order in which it happened. Each listener reads it at a pace of its own.
//
//	      block              block                    last block
//	┌─┬─┬─┬─┬─┬─┬─┬─┐  ┌─┬─┬─┬─┬─┬─┬─┬─┐  ┌─┬─┬─┬─┬─┬─┬ ─ ─┐
//	└─┴─┴─┴─┴─┴─┴─┴─┘─▶└─┴─┴─┴─┴─┴─┴─┴─┘─▶└─┴─┴─┴─┴─┴─┴ ─ ─┘
//	                        ▲ the slowest       ▲           ▲ end, and who has read all
//
// Blocks are linked forwards only and never moved, and nobody has them but the log, the
// last one, and each cursor, its own: so what is kept is what the slowest has not read, and
// nobody need free anything. What all have read, in the last block, is cleared when they
// have come to the end, for the objects in it may be large; see tidy.
//
// A record is 28 bytes: three words (the old object, the new one, the name) and a head. Beside
// it are marks of when records came, 32 bytes each: one for all that come within markEvery, and
// so, where changes are further apart than that, one for each record. A change costs that and
// each listener nothing, where a listener that has a queue of its own pays some 100 bytes and
// their copying.
//
// Locks: mu, then a listener's.
type eventLog struct {
	// end is how many records there have been, ends how many of them are ends of a list.
	end, ends atomic.Uint64

	// mu is held for moments: by the informer while it publishes, and by who joins, resyncs,
	// or asks how a listener is.
	mu   sync.Mutex
	last *logBlock
	// used is how many places of last are taken.
	used  int
	words table.Words
	// spaces are numbers of those in last, by their hash: a quarter of what a block may have,
	// for few informers see more namespaces than that.
	spaces [256]uint16
	// write is the last one whose changes are in the log. ended says that the end of the
	// first list is, too, or would be if anybody had listened.
	write uint64
	ended bool
	// busy is true in a flood: then a large block is used again, for one that begins
	// small would be grown again and again.
	busy bool
}

// logBlock is some records. Who reads them knows from the log's end which there are.
type logBlock struct {
	from  uint64
	words [][3]unsafe.Pointer
	heads []logHead
	// spaces is what the keys of the records begin with. What is in it is not changed, and
	// it is replaced to grow.
	spaces atomic.Pointer[[]string]
	// taken is how many of these there are, and marks say since when records have waited.
	// The log's mu guards them.
	taken int
	marks []logMark
	next  atomic.Pointer[logBlock]
}

// logMark is the time from a place on.
type logMark struct {
	from  int
	since time.Time
}

const (
	// A block has some 450 bytes at first, for most informers are quiet, and up to 28 kB.
	fewestRecords = 16
	mostRecords   = 1008
	// keptRecords is how many an informer keeps memory for that is not busy, some 7 kB.
	keptRecords = 256
	// markEvery is how exact the age of what waits is.
	markEvery = 50 * time.Millisecond
)

// logHead is the rest of a record: kind, whether it is of the initial list, the types of
// the two objects, the length of the name, and the number of the space, for which there are
// ten bits: each record of a block brings at most one.
type logHead uint32

const (
	// noObject and boxedObject are types: that of nothing, and that of an object whose word
	// is a *any, as table.Words has it.
	noObject    = 0
	boxedObject = 1
	mostTypes   = 1 << 5
	// longName is the length of a name that is a *string.
	longName = 1<<8 - 1
)

func newHead(n *notification, oldType, objType uint16, name, space int) logHead {
	head := logHead(n.kind) | logHead(oldType)<<4 | logHead(objType)<<9 | logHead(name)<<14 | logHead(space)<<22
	if n.initial {
		head |= 1 << 3
	}
	return head
}

func (h logHead) kind() notificationKind { return notificationKind(h & 7) }
func (h logHead) initial() bool          { return h&(1<<3) != 0 }
func (h logHead) oldType() uint16        { return uint16(h >> 4 & (mostTypes - 1)) }
func (h logHead) objType() uint16        { return uint16(h >> 9 & (mostTypes - 1)) }
func (h logHead) name() int              { return int(h >> 14 & longName) }
func (h logHead) space() int             { return int(h >> 22) }

func newEventLog() *eventLog {
	return &eventLog{words: table.NewWords(), last: newLogBlock(0, fewestRecords, 0)}
}

// newLogBlock is one with room for so many records, of so many spaces; room for more of those
// is made when they come.
func newLogBlock(from uint64, records, spaces int) *logBlock {
	b := &logBlock{from: from, words: make([][3]unsafe.Pointer, records), heads: make([]logHead, records)}
	room := make([]string, spaces)
	b.spaces.Store(&room)
	return b
}

// appendLocked appends some records, which nobody sees before endLocked. The caller holds
// mu.
func (e *eventLog) appendLocked(all []notification, now time.Time) {
	for i := range all {
		if e.used == len(e.last.heads) {
			grown := newLogBlock(e.last.from+uint64(e.used), min(mostRecords, 4*e.used), e.last.taken)
			e.last.next.Store(grown)
			e.last, e.used = grown, 0
			clear(e.spaces[:])
		}
		e.last.mark(e.used, now)
		e.put(&all[i])
		e.used++
	}
}

// mark notes since when what comes at a place has waited.
func (b *logBlock) mark(at int, now time.Time) {
	if n := len(b.marks); n == 0 || now.Sub(b.marks[n-1].since) >= markEvery {
		b.marks = append(b.marks, logMark{at, now})
	}
}

func (e *eventLog) put(n *notification) {
	oldType, old := e.apart(n.old)
	objType, obj := e.apart(n.obj)
	space, name, spaced := n.key.Parts()
	number := 0
	if spaced {
		number = e.spaceOf(space)
	}
	length, first := len(name), unsafe.Pointer(unsafe.StringData(name))
	if length >= longName {
		kept := name
		length, first = longName, unsafe.Pointer(&kept)
	}
	e.last.words[e.used] = [3]unsafe.Pointer{old, obj, first}
	e.last.heads[e.used] = newHead(n, oldType, objType, length, number)
	if n.kind == endOfList {
		e.ends.Add(1)
	}
}

func (e *eventLog) apart(obj any) (typ uint16, word unsafe.Pointer) {
	if obj == nil {
		return noObject, nil
	}
	if typ, word = e.words.Apart(obj); typ < mostTypes {
		return typ, word
	}
	kept := obj // not obj itself, which would be on the heap in any case
	return boxedObject, unsafe.Pointer(&kept)
}

// spaceOf is the number of a space in the last block, from 1 on. To have one twice does no
// harm but to the memory: so it is looked for in a few places only.
func (e *eventLog) spaceOf(space string) int {
	const places = 8
	b := e.last
	spaces, at := *b.spaces.Load(), maphash.String(keySeed, space)
	for i := range uint64(places) {
		number := &e.spaces[(at+i)%uint64(len(e.spaces))]
		switch {
		case *number == 0, i == places-1:
			*number = uint16(b.addSpace(space))
			return b.taken
		case spaces[*number-1] == space:
			return int(*number)
		}
	}
	return 0
}

func (b *logBlock) addSpace(space string) int {
	spaces := *b.spaces.Load()
	if b.taken == len(spaces) {
		grown := make([]string, max(2, 2*len(spaces)))
		copy(grown, spaces)
		b.spaces.Store(&grown)
		spaces = grown
	}
	spaces[b.taken] = space
	b.taken++
	return b.taken
}

// endLocked shows what was appended. The caller holds mu.
func (e *eventLog) endLocked() { e.end.Store(e.last.from + uint64(e.used)) }

// cursorLocked is one at the end. The caller holds mu, or nobody has the log yet.
func (e *eventLog) cursorLocked() logCursor {
	return logCursor{log: e, block: e.last, next: e.last.from + uint64(e.used), ends: e.ends.Load()}
}

// tidyLocked clears what all have read: it is for when they have come to the end. The
// caller holds mu, and that of each listener in turn is taken.
func (e *eventLog) tidyLocked(listeners []*listener) {
	if e.used == 0 {
		return
	}
	for _, l := range listeners {
		if !l.hasRead(e.end.Load()) {
			return
		}
	}
	end := e.end.Load()
	if len(e.last.heads) > keptRecords && !e.busy {
		e.last, e.used = newLogBlock(end, fewestRecords, 0), 0
		clear(e.spaces[:])
		for _, l := range listeners {
			l.moveTo(e.last)
		}
		return
	}
	clear(e.last.words[:e.used])
	e.last.from, e.used = end, 0
	clear(e.last.marks)
	e.last.marks = e.last.marks[:0]
	if e.last.taken > 0 {
		clear((*e.last.spaces.Load())[:e.last.taken])
		clear(e.spaces[:])
		e.last.taken = 0
	}
}
