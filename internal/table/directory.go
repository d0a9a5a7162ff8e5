package table

import (
	"math/bits"
	"sync/atomic"
)

// directory finds numbers by hash: those of cells by the hash of their key, those of index records
// by the hash of their text. Callers compare the keys themselves.
//
//	low bits of the hash ──▶ segment: │ group │ group │ ... │
//	                                     ▲      7 tags, 7 hashes, 7 numbers
//	            top bits of the hash
//
// A search begins at the group that the top bits select, and ends at the first group with a free
// place. Tags are 7 bits of the hashes; a search compares those of a group at once. It is
// extendible hashing: a full segment is split by one more bit of the hash, and all others stay
// unchanged. A segment that uses fewer bits than the directory has several positions. Doubling
// copies only pointers to pages, so no step takes long.
type directory struct {
	// mask has the low bits of a hash that select a segment.
	mask     uint32
	segments cowList[segment]
}

const (
	groups = 8
	// groupLen is the number of places of a group. With as many tags, they fill a cache line.
	groupLen = 7
	// maxUsed is the maximum number of used places of a segment. Searches end at a free one.
	maxUsed = groups * groupLen * 7 / 8
)

// segment has a part of the numbers.
type segment struct {
	// bits is the number of low bits that all hashes have in common; used is the number of used
	// places.
	bits, used uint8
	_          [54]byte // with the piece's epoch, one cache line
	groups     [groups]group
}

// group has places for hashes and their numbers, in one cache line. All words are accessed
// atomically, but are not of atomic types, so that a segment can be copied.
type group struct {
	// tags has a byte for each place, from the lowest one on: the tag of its hash, or 0 if the
	// place is free. The highest byte is 0.
	tags            uint64
	hashes, numbers [groupLen]uint32
}

const (
	// eachByte is 1 in each byte of a word, highBits the highest bit of each byte.
	eachByte = 1 << 64 / 255
	highBits = eachByte << 7
	// allPlaces has the highest bit of the byte of each place.
	allPlaces = highBits >> 8
)

// hashOf reduces a 64-bit hash to one for a directory.
func hashOf(hash uint64) uint32 {
	return uint32(hash >> 32)
}

// firstGroup returns the group in which a search begins.
func firstGroup(hash uint32) int {
	return int(hash / (1 << 32 / groups))
}

// tagOf returns seven bits of a hash, which select neither its segment nor its group, after a 1.
func tagOf(hash uint32) uint64 {
	return uint64(hash>>21&0x7f | 0x80)
}

// newDirectory returns a directory whose positions fill a page, so that it can be doubled.
func newDirectory(epoch uint64) directory {
	d := directory{mask: pageLen - 1}
	d.replace(0, &piece[segment]{epoch: epoch})
	return d
}

// writable returns the segment of a hash for changes.
func (d *directory) writable(hash uint32, epoch uint64) *segment {
	p := d.segments.get(hash & d.mask)
	if p.epoch != epoch {
		p = &piece[segment]{epoch, p.value}
		d.replace(hash, p)
	}
	return &p.value
}

// replace sets all positions of a segment: those that end with its bits of the hash.
func (d *directory) replace(hash uint32, p *piece[segment]) {
	step := uint32(1) << p.value.bits
	for at := hash & (step - 1); at <= d.mask; at += step {
		d.segments.set(at, p)
	}
}

// put adds a number that is not in the directory. If the directory must double first, it returns
// false and changes nothing.
func (d *directory) put(hash, number uint32, epoch uint64) bool {
	s := d.writable(hash, epoch)
	for s.used == maxUsed {
		if d.mask>>s.bits == 0 {
			return false
		}
		s = d.split(s, hash, epoch)
	}
	s.put(hash, number)
	return true
}

// split replaces a full segment, that of a hash, by two that have one more bit of their hashes in
// common. It returns the one of the hash.
func (d *directory) split(full *segment, hash uint32, epoch uint64) *segment {
	bit := uint32(1) << full.bits
	empty := segment{bits: full.bits + 1}
	zeros := &piece[segment]{epoch, empty}
	ones := &piece[segment]{epoch, empty}
	halfOf := func(hash uint32) *segment {
		if hash&bit == 0 {
			return &zeros.value
		}
		return &ones.value
	}
	for i := range full.groups {
		g := &full.groups[i]
		for used := g.used(); used != 0; used &= used - 1 {
			at := place(used)
			moved := g.hashes[at]
			halfOf(moved).put(moved, g.numbers[at])
		}
	}
	d.replace(hash&^bit, zeros)
	d.replace(hash|bit, ones)
	return halfOf(hash)
}

// double gives each segment twice as many positions.
func (d *directory) double() {
	d.segments.double()
	d.mask = d.mask<<1 | 1
}

// first returns a number with a hash. Most hashes have one, in the first group.
func (d *directory) first(hash uint32) (number uint32, found bool) {
	s := &d.segments.get(hash & d.mask).value
	g := &s.groups[firstGroup(hash)]
	for candidates := g.candidates(hash); candidates != 0; candidates &= candidates - 1 {
		at := place(candidates)
		if atomic.LoadUint32(&g.hashes[at]) == hash {
			return atomic.LoadUint32(&g.numbers[at]), true
		}
	}
	return d.find(hash, func(uint32) bool { return true })
}

// find returns the first number with a hash for which match returns true.
func (d *directory) find(hash uint32, match func(number uint32) bool) (number uint32, found bool) {
	s := &d.segments.get(hash & d.mask).value
	for i := range groups {
		g := &s.groups[(firstGroup(hash)+i)%groups]
		for candidates := g.candidates(hash); candidates != 0; candidates &= candidates - 1 {
			at := place(candidates)
			if atomic.LoadUint32(&g.hashes[at]) != hash {
				continue
			}
			number = atomic.LoadUint32(&g.numbers[at])
			if match(number) {
				return number, true
			}
		}
		if g.hasFree() {
			break
		}
	}
	return 0, false
}

// remove removes a number, which must be in the directory.
func (d *directory) remove(hash, number uint32, epoch uint64) {
	s := d.writable(hash, epoch)
	for i := firstGroup(hash); ; i = (i + 1) % groups {
		g := &s.groups[i]
		for candidates := g.candidates(hash); candidates != 0; candidates &= candidates - 1 {
			at := place(candidates)
			if g.numbers[at] == number {
				s.removeAt(i, at)
				return
			}
		}
	}
}

// candidates returns a bit for each place with the tag of a hash: see place. It has no branches,
// since mispredicted ones would wait for memory.
func (g *group) candidates(hash uint32) uint64 {
	different := atomic.LoadUint64(&g.tags) ^ tagOf(hash)*eachByte
	const low = 0x7f * eachByte
	nonzero := (different&low + low) | different // in the highest bit of each byte
	return ^nonzero & highBits
}

// used returns a bit for each used place: see place.
func (g *group) used() uint64 {
	return atomic.LoadUint64(&g.tags) & allPlaces
}

// free returns a bit for each free place.
func (g *group) free() uint64 {
	return ^atomic.LoadUint64(&g.tags) & allPlaces
}

// place returns the place of the lowest bit.
func place(of uint64) int {
	return bits.TrailingZeros64(of) / 8
}

// set uses a place. Numbers and hashes of free places have no meaning.
func (g *group) set(place int, hash, number uint32) {
	atomic.StoreUint32(&g.numbers[place], number)
	atomic.StoreUint32(&g.hashes[place], hash)
	g.setTag(place, tagOf(hash))
}

func (g *group) setTag(place int, tag uint64) {
	shift := 8 * place
	others := g.tags &^ (0xff << shift)
	atomic.StoreUint64(&g.tags, others|tag<<shift)
}

// put adds a number. There must be a free place.
func (s *segment) put(hash, number uint32) {
	s.used++
	for i := firstGroup(hash); ; i = (i + 1) % groups {
		g := &s.groups[i]
		if free := g.free(); free != 0 {
			g.set(place(free), hash, number)
			return
		}
	}
}

// removeAt frees a place. A search ends at the first group with a free place. If a number of a
// later group would no longer be found, it moves to the place, and its own place is freed instead.
func (s *segment) removeAt(group, place int) {
	s.used--
	for {
		fromGroup, fromPlace, found := s.overflow(group)
		if !found {
			s.groups[group].setTag(place, 0)
			return
		}
		from := &s.groups[fromGroup]
		hash := from.hashes[fromPlace]
		number := from.numbers[fromPlace]
		s.groups[group].set(place, hash, number)
		group = fromGroup
		place = fromPlace
	}
}

// overflow returns the place of a number that is in a later group because group was full, if there
// is one. Only groups up to the first one with a free place can have such a number.
func (s *segment) overflow(group int) (from, at int, found bool) {
	if s.groups[group].hasFree() {
		return 0, 0, false // no search that begins here continues in the next group
	}
	for distance := 1; distance < groups; distance++ {
		from = (group + distance) % groups
		g := &s.groups[from]
		for used := g.used(); used != 0; used &= used - 1 {
			at := place(used)
			if probes(g.hashes[at], from) >= distance {
				return from, at, true
			}
		}
		if s.groups[from].hasFree() {
			break
		}
	}
	return 0, 0, false
}

// probes returns how many groups a search for a hash passes before it reaches a group.
func probes(hash uint32, group int) int {
	return (group - firstGroup(hash) + groups) % groups
}

func (g *group) hasFree() bool {
	return g.free() != 0
}
