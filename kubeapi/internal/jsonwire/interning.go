package jsonwire

import (
	"encoding/binary"
	"math/bits"
)

const (
	// maxInternedLength is the length of the longest interned string: field names, keys of field
	// sets, phases, images, owners' UIDs, times. Longer strings seldom repeat.
	maxInternedLength = 64

	slotBits = 10
)

// internTable returns the same string for the same bytes in most cases. It has a fixed number of
// slots, each with the last string that hashed there, so no input makes it grow.
type internTable [1 << slotBits]internEntry

type internEntry struct {
	text string
	// boxed is text as an any, set when it is first needed.
	boxed any
}

func (t *internTable) find(raw []byte) *internEntry {
	slot := &t[slotFor(raw)]
	if slot.text != string(raw) {
		*slot = internEntry{text: string(raw)}
	}
	return slot
}

// slotFor hashes the first and last bytes and the length, which is faster than hashing everything.
// Strings that differ only in the middle replace one another.
func slotFor(raw []byte) uint64 {
	var first, last uint64
	switch n := len(raw); {
	case n >= 8:
		first = binary.LittleEndian.Uint64(raw)
		last = binary.LittleEndian.Uint64(raw[n-8:])
	case n >= 4:
		first = uint64(binary.LittleEndian.Uint32(raw))
		last = uint64(binary.LittleEndian.Uint32(raw[n-4:]))
	case n > 0:
		first = uint64(raw[0]) | uint64(raw[n/2])<<8
		last = uint64(raw[n-1])
	}
	// The multiplier is 2^64 divided by the golden ratio. The upper bits are mixed best.
	hash := (first ^ bits.RotateLeft64(last, 29) + uint64(len(raw))) * 0x9e3779b97f4a7c15
	return hash >> (64 - slotBits)
}

func (t *internTable) string(raw []byte) string { return t.find(raw).text }

func (t *internTable) value(raw []byte) any {
	slot := t.find(raw)
	if slot.boxed == nil {
		slot.boxed = slot.text
	}
	return slot.boxed
}
