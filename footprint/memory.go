package footprint

// claim says how memory that an object refers to counts.
type claim uint8

const (
	// counted memory was counted already: for this object, or as shared.
	counted claim = iota
	// fresh memory was not met before.
	fresh
	// becameShared memory was met before, for one other object.
	becameShared
)

// Memory is noted by its first byte, in units of which an allocation has at least one.
const (
	unitBytes   = 8
	regionBytes = 8 << 10
	regionWords = regionBytes / unitBytes / 64
)

// region is a part of the heap: a bit for each unit at which met memory begins.
type region struct {
	object uint32
	// met is by any object, shared by several, mine by the object.
	met    [regionWords]uint64
	shared [regionWords]uint64
	mine   [regionWords]uint64
}

// memory is the memory that was met so far. It takes about a twentieth of that.
type memory struct {
	regions map[uintptr]*region
	// object is the number of the current object.
	object uint32
}

func newMemory() memory { return memory{regions: map[uintptr]*region{}} }

// claim notes that the current object refers to memory that begins at an address.
func (m *memory) claim(address uintptr) claim {
	r := m.region(address / regionBytes)
	unit := address % regionBytes / unitBytes
	word := unit / 64
	bit := uint64(1) << (unit % 64)

	isMine := r.mine[word]&bit != 0
	wasMet := r.met[word]&bit != 0
	wasShared := r.shared[word]&bit != 0
	r.mine[word] |= bit
	r.met[word] |= bit
	switch {
	case isMine || wasShared:
		return counted
	case !wasMet:
		return fresh
	}
	r.shared[word] |= bit
	return becameShared
}

func (m *memory) region(number uintptr) *region {
	r := m.regions[number]
	if r == nil {
		r = &region{object: m.object}
		m.regions[number] = r
	}
	if r.object != m.object {
		clear(r.mine[:])
		r.object = m.object
	}
	return r
}
