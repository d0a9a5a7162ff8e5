package footprint

import (
	"math/bits"
	"reflect"
)

// The parts of a Go map. A map of at most eight entries has one group, a larger one has tables of
// groups, of which at most seven eighths are used.
const (
	mapHeader    = 8 + 4*wordSize + 8
	tableHeader  = 8 + 3*wordSize
	groupSlots   = 8
	maxTableSize = 1024
	// largeEntry is the size of a key or value from which on the map refers to it.
	largeEntry = 128
)

// mapLayout is the layout of the maps of one type.
type mapLayout struct {
	groupSize   int64
	hasPointers bool
	// indirect is the memory of keys and values that are referred to, for each entry.
	indirect int64
}

func layoutOf(t reflect.Type, a *allocator) mapLayout {
	var layout mapLayout
	slot := int64(0)
	alignment := int64(1)
	for _, part := range []reflect.Type{t.Key(), t.Elem()} {
		size := int64(part.Size())
		aligned := int64(part.Align())
		pointers := hasPointers(part)
		if size > largeEntry {
			layout.indirect += a.allocated(size, pointers)
			size = wordSize
			aligned = wordSize
			pointers = true
		}
		slot = roundUp(slot, aligned) + size
		alignment = max(alignment, aligned)
		layout.hasPointers = layout.hasPointers || pointers
	}
	layout.groupSize = 8 + groupSlots*roundUp(slot, alignment)
	return layout
}

// bytes returns the memory of a map with so many entries that has never had more.
func (l mapLayout) bytes(entries int, a *allocator) int64 {
	total := a.allocated(mapHeader, true) + int64(entries)*l.indirect
	if entries == 0 {
		return total
	}
	if entries <= groupSlots {
		return total + a.allocated(l.groupSize, l.hasPointers)
	}
	slots := nextPowerOfTwo((entries*groupSlots + groupSlots - 2) / (groupSlots - 1))
	tables := max(1, slots/maxTableSize)
	groups := int64(slots / tables / groupSlots)
	table := a.allocated(tableHeader, true) + a.allocated(groups*l.groupSize, l.hasPointers)
	return total + a.allocated(int64(tables)*wordSize, true) + int64(tables)*table
}

func roundUp(size, alignment int64) int64 {
	return (size + alignment - 1) / alignment * alignment
}

func nextPowerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }
