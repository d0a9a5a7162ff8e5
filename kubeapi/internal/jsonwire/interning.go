package jsonwire

import (
	"encoding/binary"
	"math/bits"
)

const (
	// mostInterned is the length of the longest string that is interned: names of fields,
	// keys of field sets, phases, images, UIDs of owners, times that are alike. What is
	// longer is rarely met twice.
	mostInterned = 64

	slotBits = 10
)

// interning mostly returns the same string for the same bytes. It has a fixed number of places, each for the last string that
// belonged there, so that no input makes it grow.
type interning [1 << slotBits]interned

type interned struct {
	text string
	// boxed is text as an any, from the first time on that it is asked for.
	boxed any
}

func (t *interning) find(raw []byte) *interned {
	place := &t[slotOf(raw)]
	if place.text != string(raw) {
		*place = interned{text: string(raw)}
	}
	return place
}

// slotOf mixes the beginning, the end and the length of a string. Somebody who sends
// strings that differ in the middle alone does without interning, and without the time
// that a hash of everything would take of all the others.
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
	// The multiplier is 2 to the 64th by the golden ratio; the upper bits are the mixed ones.
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
