package table

import "slices"

// postings are the numbers of the cells that have a value, in blocks, so that a change copies at
// most two blocks and the list of blocks. All blocks but the last one are full. A number is found
// by its place: see reference.
type postings struct {
	// epoch is the one in which the list of blocks was made.
	epoch  uint64
	blocks []piece[[]uint32]
	len    uint32
}

// blockLen is the number of numbers in a full block.
const blockLen = 1024

// add adds a number at the end and returns its place.
func (p *postings) add(number uint32, epoch uint64) (place uint32) {
	place = p.len
	if place%blockLen == 0 {
		empty := piece[[]uint32]{epoch: epoch}
		p.blocks = append(slices.Clip(p.blocks), empty)
		p.epoch = epoch
	}
	last := p.writable(place/blockLen, epoch)
	used := len(last.value)
	if used == cap(last.value) {
		more := min(used+1, blockLen-used)
		last.value = slices.Grow(last.value, more)
	}
	last.value = append(last.value, number)
	p.len++
	return place
}

// remove moves the last number to a place and returns it.
func (p *postings) remove(place uint32, epoch uint64) (moved uint32) {
	p.len--
	at := p.len / blockLen
	last := p.writable(at, epoch)
	used := len(last.value) - 1
	moved = last.value[used]
	last.value = last.value[:used]
	switch {
	case used == 0:
		first := int(at)
		p.blocks = slices.Delete(p.blocks, first, first+1)
	case cap(last.value) > 4*used:
		last.value = slices.Clone(last.value) // releases the rest of the array
	}
	if place < p.len {
		block := p.writable(place/blockLen, epoch)
		block.value[place%blockLen] = moved
	}
	return moved
}

// writable returns a block that may be changed.
func (p *postings) writable(block uint32, epoch uint64) *piece[[]uint32] {
	if p.epoch != epoch {
		p.blocks = slices.Clone(p.blocks)
		p.epoch = epoch
	}
	b := &p.blocks[block]
	if b.epoch != epoch {
		b.value = slices.Clone(b.value)
		b.epoch = epoch
	}
	return b
}
