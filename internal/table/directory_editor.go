package table

import "sync/atomic"

// editor changes a directory, which it replaces where readers may be in it.
type editor struct {
	*directory
	owner uint64
	what  hasher
	// short has shortcuts to the segments, nil if nobody has.
	short *shortcuts
}

// hasher knows the hash of what a number stands for, of which the directory itself keeps nothing
// but for the tag.
type hasher interface {
	hashOf(number uint32, tag uint64) uint64
}

// own makes the segment of a hash one that may be changed.
func (e *editor) own(hash uint64) *segment {
	s := e.segment(hash)
	if s.owner == e.owner {
		return s
	}
	copied := s.copyOf(e.owner)
	e.replace(hash, s.bits, copied, copied)
	return copied
}

// replace puts segments where the one stands that has those bits of a hash: one for those
// whose next bit is 0, one for the others. If it is two, the shelf has a bit for that.
func (e *editor) replace(hash uint64, bits uint8, zero, one *segment) {
	s := e.ownShelf(hash)
	span := 1 << (s.before + s.bits - uint(bits))
	from := s.at(hash) &^ (span - 1)
	storeHalves(s.segments[from:from+span], zero, one)
	if e.short != nil {
		e.short.replace(hash, bits, zero, one)
	}
}

// ownShelf makes the shelf of a hash one that may be changed.
func (e *editor) ownShelf(hash uint64) *shelf {
	s := e.shelves[e.at(hash)].Load()
	if s.owner == e.owner {
		return s
	}
	copied := s.copyWith(e.owner, s.before, s.bits, 0)
	e.replaceShelf(hash, s.before, copied, copied)
	return copied
}

// copyWith makes a shelf that has so many bits before and of its own. Where it is less of the
// hashes, which half of them says.
func (s *shelf) copyWith(owner uint64, before, bits uint, half int) *shelf {
	c := newShelf(owner, before, bits)
	from := half << (s.bits - (before - s.before))
	for i := range c.segments {
		// One bit more of its own means that each stands there twice.
		c.segments[i].Store(s.segments[from+i>>(before+bits-s.before-s.bits)].Load())
	}
	return c
}

// replaceShelf is replace for shelves.
func (e *editor) replaceShelf(hash uint64, before uint, zero, one *shelf) {
	if e.directory.owner != e.owner {
		e.copyWith(e.bits)
	}
	span := 1 << (e.bits - before)
	from := e.at(hash) &^ (span - 1)
	storeHalves(e.shelves[from:from+span], zero, one)
}

// storeHalves has the first half of a list be one thing, the other another; where it is one
// place, that is the first.
func storeHalves[T any](list []atomic.Pointer[T], zero, one *T) {
	for i := range list {
		with := zero
		if 2*i >= len(list) && len(list) > 1 {
			with = one
		}
		list[i].Store(with)
	}
}

// copyWith makes a directory of so many bits, the same or one more. There is a shelf for some
// 10,000 numbers.
func (e *editor) copyWith(bits uint) {
	grown := &directory{owner: e.owner, bits: bits, shelves: make([]atomic.Pointer[shelf], 1<<bits)}
	for i := range grown.shelves {
		grown.shelves[i].Store(e.shelves[i>>(bits-e.bits)].Load())
	}
	e.directory = grown
}

// makeBit makes the shelf of a hash one that has a bit for more segments.
func (e *editor) makeBit(hash uint64) {
	s := e.shelves[e.at(hash)].Load()
	if s.bits < shelfBits {
		grown := s.copyWith(e.owner, s.before, s.bits+1, 0)
		e.replaceShelf(hash, s.before, grown, grown)
		return
	}
	if s.before == e.bits {
		e.copyWith(e.bits + 1)
	}
	// Each half has all bits of its own again, the last of which is new.
	e.replaceShelf(hash, s.before, s.copyWith(e.owner, s.before+1, s.bits, 0), s.copyWith(e.owner, s.before+1, s.bits, 1))
}

// put adds a number that is not there.
func (e *editor) put(hash uint64, number uint32) {
	s := e.own(hash)
	for s.taken >= most {
		e.makeRoom(hash, s)
		s = e.own(hash)
	}
	s.put(hash, number)
}

// makeRoom clears a segment of what was removed, or splits it.
func (e *editor) makeRoom(hash uint64, s *segment) {
	if s.removed > most/4 {
		cleared := newSegment(e.owner, s.bits)
		e.spread(s, func(uint64) *segment { return cleared })
		e.replace(hash, s.bits, cleared, cleared)
		return
	}
	if shelf := e.shelves[e.at(hash)].Load(); uint(s.bits) == shelf.before+shelf.bits {
		e.makeBit(hash)
	}
	halves := [2]*segment{newSegment(e.owner, s.bits+1), newSegment(e.owner, s.bits+1)}
	e.spread(s, func(h uint64) *segment { return halves[h>>(63-s.bits)&1] })
	e.replace(hash, s.bits, halves[0], halves[1])
}

// spread puts what a segment holds into others, which is said by hash. All hashes are read
// before: each is somewhere else in memory, which is waited for together as long as nothing
// depends on one of them.
func (e *editor) spread(s *segment, into func(hash uint64) *segment) {
	var hashes [most]uint64
	var numbers [most]uint32
	n := 0
	s.each(func(number uint32, tag uint64) {
		hashes[n], numbers[n] = e.what.hashOf(number, tag), number
		n++
	})
	for i, hash := range hashes[:n] {
		into(hash).put(hash, numbers[i])
	}
}

// remove takes out a number, which must be there.
func (e *editor) remove(hash uint64, number uint32) {
	s := e.own(hash)
	var found search
	found.begin(s, hash)
	for at := found.next(); at >= 0; at = found.next() {
		if s.number(at) == number {
			s.remove(at)
			return
		}
	}
}
