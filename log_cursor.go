package cache

import (
	"slices"
	"time"
	"unsafe"

	"github.com/watchmirror/cache/internal/table"
)

// logCursor is how far one listener has read the log. The zero value has nothing to read.
// Its owner guards it.
type logCursor struct {
	log   *eventLog
	block *logBlock
	// next is the number of the record to read next, ends how many ends of a list were
	// before it.
	next, ends uint64
}

// len is how many records are to be read.
func (c *logCursor) len() int {
	if c.log == nil {
		return 0
	}
	return int(c.log.end.Load() - c.next)
}

// endsAhead is how many of them are ends of a list.
func (c *logCursor) endsAhead() int {
	if c.log == nil {
		return 0
	}
	return int(c.log.ends.Load() - c.ends)
}

// read is the next record, of which there must be one.
func (c *logCursor) read() (n notification) {
	c.follow()
	c.readHere(&n)
	return n
}

// readSome reads the next records into what is empty, and says how many: as many as there is
// room for and are in one block, if each is told with one call. Any other comes alone.
func (c *logCursor) readSome(room []notification) (taken int) {
	records := min(len(room), c.len())
	if records <= 0 { // it is before the end while a write is skipped that is being published
		return 0
	}
	c.follow()
	at := int(c.next - c.block.from)
	for _, head := range c.block.heads[at:min(at+records, len(c.block.heads))] {
		alone := head.kind() == endOfList || head.kind() == tellRecreated
		if alone && taken > 0 {
			break
		}
		c.readHere(&room[taken])
		if taken++; alone {
			break
		}
	}
	return taken
}

// follow goes on to the block of the next record.
func (c *logCursor) follow() {
	for following := c.block.next.Load(); following != nil && c.next >= following.from; following = c.block.next.Load() {
		c.block = following
	}
}

// readHere reads the next record, which is in the block that the cursor is in, into what is
// empty.
func (c *logCursor) readHere(n *notification) {
	at := c.next - c.block.from
	words, head := &c.block.words[at], c.block.heads[at]
	c.next++
	if n.kind = head.kind(); n.kind == endOfList {
		c.ends++
		return
	}
	n.initial = head.initial()
	if typ := head.oldType(); typ != noObject {
		n.old = c.log.words.Together(typ, words[0])
	}
	if typ := head.objType(); typ != noObject {
		n.obj = c.log.words.Together(typ, words[1])
	}
	name := ""
	if head.name() == longName {
		name = *(*string)(words[2])
	} else {
		name = unsafe.String((*byte)(words[2]), head.name())
	}
	if space := head.space(); space == 0 {
		n.key = table.KeyFrom("", name, false)
	} else {
		n.key = table.KeyFrom((*c.block.spaces.Load())[space-1], name, true)
	}
}

// since is since when the record has waited that was read last: its block is still the
// cursor's. The caller holds the log's mu, and has held it since before that was read.
func (c *logCursor) since() time.Time { return c.block.sinceAt(int(c.next - 1 - c.block.from)) }

// sinceAt is since when what is at a place has waited. The caller holds the log's mu.
func (b *logBlock) sinceAt(place int) time.Time {
	after, exact := slices.BinarySearchFunc(b.marks, place, func(m logMark, place int) int { return m.from - place })
	switch {
	case exact:
		return b.marks[after].since
	case after == 0:
		return time.Time{}
	}
	return b.marks[after-1].since
}
