package table

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// directory finds numbers by hash: those of cells by the hash of their key, those of index
// values by that of their text. It does not know what it finds, so that the one who asks
// compares.
//
//	first bits of the hash ──▶ shelf ── next bits ──▶ segment: │ group │ group │ ... │
//	                                                             ▲      12 tags, 12 numbers
//	                                              bits of the middle, and on from there
//
// A segment that is full is split in two, by one more bit of the hash; its shelf doubles when
// there is no such bit yet, and is split itself when it is large. So it grows by a segment at
// a time, and no step takes longer the more there is.
type directory struct {
	owner uint64
	// bits is how many bits of a hash say which shelf. A shelf that needs fewer stands in
	// several places, as a segment does in its shelf.
	bits    uint
	shelves []atomic.Pointer[shelf]
}

// shelf is the segments of all hashes that begin with the same bits.
type shelf struct {
	owner uint64
	// before is how many bits of a hash say that it is this shelf, bits how many after
	// those say which of its segments.
	before, bits uint
	segments     []atomic.Pointer[segment]
}

// shelfBits is how many bits a shelf has at most: 2 kB.
const shelfBits = 8

const (
	groups   = 8
	groupLen = 12
	// most is up to how many places are taken: with fewer free ones a search is long.
	most = groups * groupLen * 7 / 8
)

// segment is some of the numbers. All searches for one go through the same groups.
type segment struct {
	groups [groups]group
	owner  uint64
	bits   uint8
	// taken counts the places that are not empty, removed those of them that hold
	// nothing any more.
	taken, removed uint8
}

// group is some numbers and their tags, a byte each, in one cache line.
type group struct {
	tags    [2]atomic.Uint64 // of the second only the first four bytes are used
	numbers [groupLen]uint32
}

// plainGroup is the memory of a group, as plainChunk is that of a chunk.
type plainGroup [8]uint64

// It does not compile unless they are of one size.
var _ = [1]struct{}{}[unsafe.Sizeof(group{})-unsafe.Sizeof(plainGroup{})]

// copyOf makes a segment of another owner with the same numbers.
func (s *segment) copyOf(owner uint64) *segment {
	c := &segment{owner: owner, bits: s.bits, taken: s.taken, removed: s.removed}
	*(*[groups]plainGroup)(unsafe.Pointer(&c.groups)) = *(*[groups]plainGroup)(unsafe.Pointer(&s.groups))
	return c
}

// A tag is eight bits of the hash, so that seldom anything is compared in vain. Some
// values have another meaning.
const (
	emptyTag   = 0
	removedTag = 1
	// noTag is that of a byte that has no number.
	noTag    = 2
	firstTag = 3

	low  = 0x0101010101010101
	high = 0x8080808080808080
	// noTags are the bytes of a group that have no number.
	noTags = noTag * (low &^ 0xffffffff)
)

func tagOf(hash uint64) uint64 { return max(firstTag, hash&0xff) }

// home is the group with which a search begins. Its bits are before those of the tag; the
// first ones choose the segment.
func home(hash uint64) int { return int(hash >> 8 % groups) }

// equal has the high bit of each byte of tags that is that of pattern, and seldom that of one
// after such a byte: to be exact takes longer than to look at one in vain. It is 0 only if
// there is none.
func equal(tags, pattern uint64) uint64 {
	differ := tags ^ pattern
	return (differ - low) &^ differ & high
}

// A place in a segment is a group, and which of its numbers.
func placeIn(group, slot int) int              { return group<<4 | slot }
func groupAndSlot(place int) (group, slot int) { return place >> 4 % groups, place & 15 }

func newDirectory(owner uint64) *directory {
	d := &directory{owner: owner, shelves: make([]atomic.Pointer[shelf], 1)}
	first := newShelf(owner, 0, 0)
	first.segments[0].Store(newSegment(owner, 0))
	d.shelves[0].Store(first)
	return d
}

func newShelf(owner uint64, before, bits uint) *shelf {
	return &shelf{owner: owner, before: before, bits: bits, segments: make([]atomic.Pointer[segment], 1<<bits)}
}

// at is the first bits of a hash. The masks keep shifts by 64 apart from those by 0: there is
// one shelf then, or one segment.
func (d *directory) at(hash uint64) int {
	return int(hash>>((64-d.bits)&63)) & (len(d.shelves) - 1)
}

func (s *shelf) at(hash uint64) int {
	return int(hash>>((64-s.before-s.bits)&63)) & (len(s.segments) - 1)
}

func (d *directory) segment(hash uint64) *segment {
	s := d.shelves[d.at(hash)].Load()
	return s.segments[s.at(hash)].Load()
}

func newSegment(owner uint64, bits uint8) *segment {
	s := &segment{owner: owner, bits: bits}
	for i := range s.groups {
		s.groups[i].tags[1].Store(noTags)
	}
	return s
}

// search goes through the numbers whose tag is that of a hash. It is begun where it stands:
// to copy what has just been written word by word takes longer than a search.
type search struct {
	segment *segment
	pattern uint64
	group   int
	left    int
	matches uint64
}

func (s *search) begin(in *segment, hash uint64) {
	s.segment, s.pattern, s.group, s.left = in, tagOf(hash)*low, home(hash), groups
	s.matches = s.segment.groups[s.group].having(s.pattern)
}

// having has a bit for each place whose tag is that of the pattern: of the first eight every
// eighth bit, of the others the one after. There is no branch in it: which of the places it
// is nobody can foretell, and whoever waits for memory should not have guessed wrong.
func (g *group) having(pattern uint64) uint64 {
	return equal(g.tags[0].Load(), pattern)>>7 | equal(g.tags[1].Load(), pattern)&0x80808080>>6
}

// next is the place of the next match, -1 if there is none.
func (s *search) next() int {
	for s.matches == 0 {
		if s.left--; s.left == 0 || s.segment.groups[s.group].having(emptyTag) != 0 {
			return -1
		}
		if s.group++; s.group == groups {
			s.group = 0
		}
		s.matches = s.segment.groups[s.group].having(s.pattern)
	}
	slot := slotOf(s.matches)
	s.matches &= s.matches - 1
	return placeIn(s.group, slot)
}

// slotOf is the first of the matches.
func slotOf(matches uint64) int {
	bit := bits.TrailingZeros64(matches)
	return (bit&1*8 + bit/8) % 16
}

func (s *segment) number(place int) uint32 {
	group, slot := groupAndSlot(place)
	return atomic.LoadUint32(&s.groups[group].numbers[slot])
}

func (s *segment) setTag(place int, tag uint64) {
	group, slot := groupAndSlot(place)
	tags, shift := &s.groups[group].tags[slot/8], uint(slot%8)*8
	tags.Store(tags.Load()&^(0xff<<shift) | tag<<shift)
}

func (s *segment) tag(place int) uint64 {
	group, slot := groupAndSlot(place)
	return s.groups[group].tags[slot/8].Load() >> (uint(slot%8) * 8) & 0xff
}

// put adds a number. There must be a place.
func (s *segment) put(hash uint64, number uint32) {
	at := s.free(home(hash))
	if s.tag(at) == removedTag {
		s.removed--
	} else {
		s.taken++
	}
	group, slot := groupAndSlot(at)
	atomic.StoreUint32(&s.groups[group].numbers[slot], number)
	s.setTag(at, tagOf(hash))
}

// free is the first place from a group on that holds nothing.
func (s *segment) free(group int) int {
	for {
		for half := range s.groups[group].tags {
			tags := s.groups[group].tags[half].Load()
			// Of the tags below noTag, the lowest is always right.
			if free := (tags - noTag*low) &^ tags & high; free != 0 {
				return placeIn(group, half*8+bits.TrailingZeros64(free)/8)
			}
		}
		group = (group + 1) % groups
	}
}

// remove empties a place. A search that goes on beyond it must not end there.
func (s *segment) remove(at int) {
	if group, _ := groupAndSlot(at); s.groups[group].having(emptyTag) != 0 {
		s.setTag(at, emptyTag)
		s.taken--
		return
	}
	s.setTag(at, removedTag)
	s.removed++
}

// each calls f with every number and its tag.
func (s *segment) each(f func(number uint32, tag uint64)) {
	for group := range groups {
		for slot := range groupLen {
			at := placeIn(group, slot)
			if tag := s.tag(at); tag >= firstTag {
				f(s.number(at), tag)
			}
		}
	}
}
