package table

import (
	"sync/atomic"
	"unsafe"
)

const (
	// chunkLen is how many numbers there are to a chunk, a power of two: to find a cell
	// takes no division.
	chunkLen = 64
	// cellsInChunk is how many cells: the last number is that of none. With 24 bytes
	// before them, and 8 that the allocator puts before what has pointers, they are 2 kB,
	// which it gives without waste, and each of them is in one cache line.
	cellsInChunk = chunkLen - 1
)

// NoNumber is one that no cell has, however many there are: it is the last of a chunk.
const NoNumber = ^uint32(0)

// chunk is some cells, which are copied together. Who owns it, and what they have in common,
// is in its page.
type chunk struct {
	_     [3]uint64
	cells [cellsInChunk]slot
}

// slot is the place of a cell in its chunk. Its words may be read while they are written; the types
// of those of 64 bits see to it that they are aligned, also where pointers have 32.
type slot struct {
	value, namep unsafe.Pointer
	head, tail   atomic.Uint64
}

// plainChunk is the memory of a chunk, to be copied as a whole: words that are accessed atomically
// could only be copied one by one.
type plainChunk struct {
	_     [3]uint64
	cells [cellsInChunk]cell
}

// Neither compiles unless a slot and a cell are the same words.
var (
	_ = [1]struct{}{}[unsafe.Sizeof(slot{})-unsafe.Sizeof(cell{})]
	_ = [1]struct{}{}[unsafe.Offsetof(slot{}.tail)-unsafe.Offsetof(cell{}.tail)]
	_ = [1]struct{}{}[unsafe.Sizeof(chunk{})-unsafe.Sizeof(plainChunk{})]
)

// copyTo copies a chunk that nobody else writes to one that nobody else has.
func (c *chunk) copyTo(to *chunk) {
	*(*plainChunk)(unsafe.Pointer(to)) = *(*plainChunk)(unsafe.Pointer(c))
}

// cell is an object and its key, in 32 bytes. One that is free has no value.
type cell struct {
	value unsafe.Pointer
	// namep is the first byte of the name, whose length is in the head; nil if there is
	// none. A name that is too long for that is a *string, and a key whose space has no
	// number a *Key.
	namep unsafe.Pointer
	head  head
	tail  tail
}

// head is, from the lowest bit on, a cell's type (8 bits), the length of its name (8),
// whether it is alike (1), whether its name ends the text of its key (1), the number of its
// space (22), and the first 24 bits of its key's hash.
type head uint64

// tail is a cell's mark, and the 32 bits of the hash after those in the head. Its last 8 are
// the tag with which a directory finds the cell.
type tail uint64

const (
	// longName is the length of a name that is a *string: no name in Kubernetes is as
	// long as that.
	longName = 1<<8 - 1
	// noSpace is the space of a cell that has a *Key: there is no number left for it.
	noSpace  = 1<<22 - 1
	alikeBit = 1 << 16
	textBit  = 1 << 17
)

func newHead(id typeID, nameLen int, space uint32, hash uint64) head {
	return head(id) | head(nameLen)<<8 | head(space)<<18 | head(hash&^(1<<40-1))
}

func newTail(mark uint32, hash uint64) tail { return tail(mark) | tail(hash>>8<<32) }

func (h head) typ() typeID   { return typeID(h) }
func (h head) nameLen() int  { return int(uint8(h >> 8)) }
func (h head) space() uint32 { return uint32(h>>18) & noSpace }
func (h head) isFree() bool  { return h.typ() == noType }

// isAlike says whether there is, or was, another key of the same hash.
func (h head) isAlike() bool { return h&alikeBit != 0 }

// endsText says whether the name is the end of a text that is the whole key, which is then
// not made anew: see key_text.go. A name without a space is that text.
func (h head) endsText() bool { return h&textBit != 0 }

func (t tail) mark() uint32 { return uint32(t) }

// hasHash says whether what a cell has of its hash, all but the tag, is that of another.
func (c cell) hasHash(hash uint64) bool {
	return (uint64(c.head)^hash)>>40|uint64(uint32(c.tail>>32)^uint32(hash>>8)) == 0
}

// hash is that of the cell, which is found by a tag.
func (c cell) hash(tag uint64) uint64 {
	return uint64(c.head)>>40<<40 | uint64(c.tail)>>32<<8 | tag
}

// read reads a cell that may be written at the same time. What is read is a cell only if
// nothing was: until that is known, none of its pointers may be followed.
func (from *slot) read() cell {
	return cell{
		value: atomic.LoadPointer(&from.value),
		namep: atomic.LoadPointer(&from.namep),
		head:  head(from.head.Load()),
		tail:  tail(from.tail.Load()),
	}
}

func (from *slot) typ() typeID { return head(from.head.Load()).typ() }

func (c *chunk) write(at uint32, with cell) {
	to := &c.cells[at%chunkLen]
	atomic.StorePointer(&to.value, with.value)
	if atomic.LoadPointer(&to.namep) != with.namep {
		atomic.StorePointer(&to.namep, with.namep)
	}
	if to.head.Load() != uint64(with.head) {
		to.head.Store(uint64(with.head))
	}
	to.tail.Store(uint64(with.tail))
}

// commonType is the type of all objects of a chunk; noType if they are of several.
func (c *chunk) commonType() typeID {
	common := noType
	for i := range c.cells {
		id := c.cells[i].typ()
		switch {
		case id == noType || id == common:
		case common != noType, id == boxed:
			return noType
		default:
			common = id
		}
	}
	return common
}

// name is the text of the cell's name.
func (c cell) name() string {
	if c.head.nameLen() == longName {
		return *(*string)(c.namep)
	}
	return unsafe.String((*byte)(c.namep), c.head.nameLen())
}

// storeName is what is kept of a name: the string itself, whose bytes never change.
func storeName(key Key, space uint32) (first unsafe.Pointer, length int) {
	switch {
	case space == noSpace:
		return boxKey(key), min(len(key.name), longName)
	case len(key.name) >= longName:
		return boxName(key.name), longName
	case key.name == "":
		return nil, 0 // wherever an empty string points to, there may be nothing to read
	}
	return unsafe.Pointer(unsafe.StringData(key.name)), len(key.name)
}

// textBitOf is textBit for a key whose text is there.
func textBitOf(key Key) head {
	if _, ok := key.text(); ok {
		return textBit
	}
	return 0
}

// Functions of their own, so that only what is boxed is moved to the heap.
func boxName(name string) unsafe.Pointer { return unsafe.Pointer(&name) }
func boxKey(key Key) unsafe.Pointer      { return unsafe.Pointer(&key) }
