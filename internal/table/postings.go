package table

import "slices"

// postings are the numbers of the cells that have a value, in no order: in one slice as long
// as they are few, and then in blocks, so that a change copies no more than one, the pointers
// to some of them, and one pointer for each 16,000 numbers there are.
type postings struct {
	// owner is that of few or, if that is not where they are, of many.
	owner uint64
	few   []uint32
	many  *blocks
	len   uint32
}

// blocks are as many as the numbers need, in pages of pageBlocks, of which only the last may
// be shorter.
type blocks struct{ pages []*blockPage }

type blockPage struct {
	owner  uint64
	blocks []*block
}

// block is a kilobyte.
type block struct {
	owner   uint64
	numbers [blockLen]uint32
}

const (
	blockLen   = 254
	pageBlocks = 64
	// fewAgain is at how many the blocks become a slice again: so much below a block that
	// one who comes and goes does not copy them each time.
	fewAgain = blockLen / 2
)

func (p *postings) at(place uint32) uint32 {
	if p.many == nil {
		return p.few[place]
	}
	at := place / blockLen
	return p.many.pages[at/pageBlocks].blocks[at%pageBlocks].numbers[place%blockLen]
}

// add appends a number, and returns its place.
func (p *postings) add(number uint32, owner uint64) (place uint32) {
	place = p.len
	p.len++
	if p.many == nil && place < blockLen {
		p.ownFew(owner, int(place)+1)
		p.few = append(p.few, number)
		return place
	}
	if p.many == nil {
		first := &block{owner: owner}
		copy(first.numbers[:], p.few)
		page := &blockPage{owner, []*block{first}}
		p.few, p.many, p.owner = nil, &blocks{[]*blockPage{page}}, owner
	}
	at := place / blockLen
	p.ownMany(owner)
	if at/pageBlocks == uint32(len(p.many.pages)) {
		p.many.pages = append(p.many.pages, &blockPage{owner: owner})
	}
	page := p.ownPage(at/pageBlocks, owner)
	if at%pageBlocks == uint32(len(page.blocks)) {
		page.blocks = append(page.blocks, &block{owner: owner})
	}
	page.own(at%pageBlocks, owner).numbers[place%blockLen] = number
	return place
}

// remove takes out the number in a place, into which the last one comes, and returns that.
func (p *postings) remove(place uint32, owner uint64) (moved uint32) {
	p.len--
	moved = p.at(p.len)
	if p.many == nil {
		p.ownFew(owner, len(p.few))
		p.few[place] = moved
		p.few = p.few[:p.len]
		return moved
	}
	at := place / blockLen
	p.ownMany(owner)
	p.ownPage(at/pageBlocks, owner).own(at%pageBlocks, owner).numbers[place%blockLen] = moved
	if p.len%blockLen == 0 {
		p.dropLast(owner)
	}
	if p.len <= fewAgain {
		p.few, p.many = slices.Clone(p.many.pages[0].blocks[0].numbers[:p.len]), nil
	}
	return moved
}

// dropLast takes out the last block, which is empty.
func (p *postings) dropLast(owner uint64) {
	pages := p.many.pages
	page := p.ownPage(uint32(len(pages)-1), owner)
	last := len(page.blocks) - 1
	page.blocks[last] = nil
	page.blocks = page.blocks[:last]
	if last == 0 {
		pages[len(pages)-1] = nil
		p.many.pages = pages[:len(pages)-1]
	}
}

// ownFew makes few a slice that may be changed, with room for so many.
func (p *postings) ownFew(owner uint64, room int) {
	// There are as many slices as values, so what is left free in them counts.
	spare := room / 4
	if p.owner == owner && room <= cap(p.few) && cap(p.few)-room <= 2*spare+8 {
		return
	}
	grown := make([]uint32, len(p.few), (room+spare+3)&^3)
	copy(grown, p.few)
	p.few, p.owner = grown, owner
}

func (p *postings) ownMany(owner uint64) {
	if p.owner != owner {
		p.many, p.owner = &blocks{slices.Clone(p.many.pages)}, owner
	}
}

// ownPage makes a page of blocks one that may be changed; many must be so already.
func (p *postings) ownPage(at uint32, owner uint64) *blockPage {
	page := p.many.pages[at]
	if page.owner != owner {
		page = &blockPage{owner, slices.Clone(page.blocks)}
		p.many.pages[at] = page
	}
	return page
}

// own makes a block one that may be changed.
func (p *blockPage) own(at uint32, owner uint64) *block {
	b := p.blocks[at]
	if b.owner != owner {
		copied := *b
		copied.owner = owner
		b = &copied
		p.blocks[at] = b
	}
	return b
}

// runs are the numbers, some at a time.
func (p *postings) runs(yield func(numbers []uint32) bool) {
	if p.many == nil {
		yield(p.few)
		return
	}
	left := p.len
	for _, page := range p.many.pages {
		for _, b := range page.blocks {
			n := min(left, blockLen)
			if !yield(b.numbers[:n]) {
				return
			}
			left -= n
		}
	}
}

// each calls f with every number, as long as it returns true.
func (p *postings) each(f func(number uint32) bool) {
	p.runs(func(numbers []uint32) bool { return eachOf(numbers, f) })
}

// eachOf is a function of its own, not inlined, so that its loop has all registers.
//
//go:noinline
func eachOf(numbers []uint32, f func(number uint32) bool) bool {
	for _, number := range numbers {
		if !f(number) {
			return false
		}
	}
	return true
}
