package table

import (
	"strings"
	"unsafe"
)

// textsAtOnce is of how many chunks the texts are made in one piece of memory. Who keeps
// one of them keeps all: those of 252 keys at most, some 10 kB of usual ones. So many names
// have room in the first cache from when they are touched until they are copied.
const textsAtOnce = 4

// AppendKeys appends the texts of all keys to a list, in no order.
func (s *Snapshot) AppendKeys(list []string) []string {
	var some [textsAtOnce]*chunk
	n := 0
	s.chunks(func(c *chunk, _ unsafe.Pointer) bool {
		some[n] = c
		if n++; n == len(some) {
			list, n = s.state.appendTexts(list, some[:]), 0
		}
		return true
	})
	return s.state.appendTexts(list, some[:n])
}

// appendTexts appends the texts of the keys of some chunks. Nobody else has the room for
// those that are made, and what has been written into it is not written again.
func (s *state) appendTexts(list []string, chunks []*chunk) []string {
	var room []byte
	touched := touchNames(chunks)
	if size := s.textSize(chunks); size > 0 {
		room = roomAfter(touched, size)
	}
	for _, c := range chunks {
		for at := range c.cells {
			if c.cells[at].value == nil {
				continue
			}
			e := c.cells[at].read()
			space, isMade := s.madeOf(&e)
			if !isMade {
				list = append(list, s.text(&e))
				continue
			}
			n := copy(room, withSlash(space))
			n += copy(room[n:], e.name())
			list = append(list, unsafe.String(unsafe.SliceData(room), n))
			room = room[n:]
		}
	}
	return list
}

// roomAfter is room for texts of a size, after a byte of which nobody asks what it is: so
// there was a reason to touch names. Unlike what make returns it need not be cleared first.
func roomAfter(touched byte, size int) []byte {
	var b strings.Builder
	b.Grow(1 + size)
	_ = b.WriteByte(touched)
	return unsafe.Slice(unsafe.StringData(b.String()), 1+size)[1:]
}

// madeOf is what the text of a key begins with, if it is to be made.
func (s *state) madeOf(c *cell) (space string, isMade bool) {
	number := c.head.space()
	if c.head.endsText() || number == noSpace {
		return "", false
	}
	return s.spaces[number], true
}

// touchNames reads a byte of each name of which a text is to be made. They are wherever the
// callers had them: to look at one is to wait for memory, and here nothing else is done,
// so that many of them are waited for together.
func touchNames(chunks []*chunk) (touched byte) {
	for _, c := range chunks {
		for at := range c.cells {
			if e := &c.cells[at]; e.namep != nil && !head(e.head.Load()).endsText() {
				touched |= *(*byte)(e.namep)
			}
		}
	}
	return touched
}

// textSize is how long the texts are that are to be made.
func (s *state) textSize(chunks []*chunk) (size int) {
	for _, c := range chunks {
		for at := range c.cells {
			e := c.cells[at].read()
			space, isMade := s.madeOf(&e)
			if !isMade || e.value == nil {
				continue
			}
			length := e.head.nameLen()
			if length == longName {
				length = len(e.name())
			}
			size += len(space) + 1 + length
		}
	}
	return size
}

// text is the text of a cell's key, which is there, but for a space without a number.
func (s *state) text(c *cell) string {
	if space := c.head.space(); c.head.endsText() && space != 0 && space != noSpace {
		return textOf(len(s.spaces[space]), c.name())
	}
	return s.key(c).String()
}
