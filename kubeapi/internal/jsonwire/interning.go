package jsonwire

import (
	"encoding/binary"
	"math/bits"
)

const (
	// mostInterned is the length of the longest interned string: field names, keys of field sets, phases, images,
	// owners' UIDs, times. Longer strings seldom repeat.
	mostInterned = 64

	slotBits = 10
)

// interning returns the same string for the same bytes in most cases. It has a fixed number of slots, each with the
// last string that hashed there, so no input makes it grow.
type interning [1 << slotBits]interned

type interned struct {
	text string
	// boxed is text as an any, set when it is first needed.
	boxed any
}

func (t *interning) find(raw []byte) *interned {
	place := &t[slotOf(raw)]
	if place.text != string(raw) {
		*place = interned{text: string(raw)}
	}
	return place
}

// slotOf hashes the first and last bytes and the length, which is faster than hashing everything. Strings that differ
// only in the middle replace one another.
func slotOf(raw []byte) uint64 {
	var first, last uint64
	switch n := len(raw); {
	case n >= 8:
		first, last = binary.LittleEndian.Uint64(raw), binary.LittleEndian.Uint64(raw[n-8:])
	case n >= 4:
		first, last = uint64(binary.LittleEndian.Uint32(raw)), uint64(binary.LittleEndian.Uint32(raw[n-4:]))
	case n > 0:
		first, last = uint64(raw[0])|uint64(raw[n/2])<<8, uint64(raw[n-1])
	}
	// The multiplier is 2^64 divided by the golden ratio. The upper bits are mixed best.
	mixed := (first ^ bits.RotateLeft64(last, 29) + uint64(len(raw))) * 0x9e3779b97f4a7c15
	return mixed >> (64 - slotBits)
}

func (t *interning) string(raw []byte) string { return t.find(raw).text }

func (t *interning) value(raw []byte) any {
	place := t.find(raw)
	if place.boxed == nil {
		place.boxed = place.text
	}
	return place.boxed
}
