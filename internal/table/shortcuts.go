package table

import (
	"math/bits"
	"sync/atomic"
)

// shortcuts are what the state that readers see has of segments and chunks, in one list
// each: so Get comes to a cell in a few steps. They are no part of a snapshot: there is one
// version of them for all states from one write aside to the next, changed as they are. Where
// one is nil, the way leads over shelves or pages.
type shortcuts struct {
	// bits is how many bits of a hash say which segment. A segment that more bits say has
	// no shortcut.
	bits     uint
	segments []atomic.Pointer[segment]
	chunks   []atomic.Pointer[chunk]
	// all is how many segments there are.
	all int
}

// segment is that of a hash.
func (s *state) segment(hash uint64) *segment {
	list := s.short.segments
	if found := list[int(hash>>((64-s.short.bits)&63))&(len(list)-1)].Load(); found != nil {
		return found
	}
	return s.keys.segment(hash)
}

// chunk is that of a number; nil if there is none.
func (s *state) chunk(number uint32) *chunk {
	if at := int(number / chunkLen); at < len(s.short.chunks) {
		return s.short.chunks[at].Load()
	}
	return nil
}

// withRoom returns shortcuts that can have a shortcut to every segment, and to the chunks of
// so many cells; s itself if it can.
func (s *state) withRoom(cells uint32) *shortcuts {
	had := s.short
	chunks := int(cells/chunkLen) + 1
	if chunks <= len(had.chunks) && had.bits >= bitsFor(had.all) {
		return had
	}
	if chunks <= len(had.chunks) {
		chunks = len(had.chunks)
	} else {
		chunks += chunks / 8
	}
	return s.newShortcuts(chunks)
}

// bitsFor is such that most of so many segments have a shortcut: they have that many bits, or
// one or two more or less.
func bitsFor(segments int) uint { return uint(bits.Len(uint(segments))) }

func (s *state) newShortcuts(chunks int) *shortcuts {
	made := &shortcuts{all: 1, chunks: make([]atomic.Pointer[chunk], chunks)}
	had := s.short
	if had != nil {
		made.bits, made.all = max(had.bits, bitsFor(had.all)), had.all
		for i := range had.chunks {
			made.chunks[i].Store(had.chunks[i].Load())
		}
	}
	made.segments = make([]atomic.Pointer[segment], 1<<made.bits)
	for i := range made.segments {
		if had != nil && had.bits == made.bits {
			made.segments[i].Store(had.segments[i].Load())
		} else if found := s.keys.segment(uint64(i) << ((64 - made.bits) & 63)); uint(found.bits) <= made.bits {
			made.segments[i].Store(found)
		}
	}
	return made
}

// replace is editor.replace for shortcuts: zero and one stand where one segment stood that
// has those bits of a hash.
func (s *shortcuts) replace(hash uint64, bits uint8, zero, one *segment) {
	if zero != one {
		s.all++
	}
	if uint(bits) > s.bits {
		return // nil, as before
	}
	span := 1 << (s.bits - uint(bits))
	from := int(hash>>((64-s.bits)&63)) & (len(s.segments) - 1) &^ (span - 1)
	if zero != one && span == 1 {
		zero = nil // too many for one place
	}
	storeHalves(s.segments[from:from+span], zero, one)
}
