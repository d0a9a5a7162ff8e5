package table

import (
	"slices"
	"sync/atomic"
)

// cowList is a list of pointers that snapshots share, in pages. Elements and pages carry the
// epoch that they were made in; the writer copies those of older epochs before it changes
// them. Readers may load elements meanwhile.
type cowList[T any] struct {
	pages []atomic.Pointer[cowPage[T]]
}

type cowPage[T any] struct {
	epoch  uint64
	items  [pageLen]atomic.Pointer[T]
	epochs [pageLen]uint64
}

const pageLen = 32

// get returns an element, nil if there is none.
func (l *cowList[T]) get(i uint32) *T {
	if pages := l.pages; int(i/pageLen) < len(pages) {
		return pages[i/pageLen].Load().items[i%pageLen].Load()
	}
	return nil
}

// clone copies the list of pages, which are copied themselves when they are changed.
func (l *cowList[T]) clone() cowList[T] { return cowList[T]{slices.Clone(l.pages)} }

// has reports whether there is room for an element.
func (l *cowList[T]) has(i uint32) bool { return int(i/pageLen) < len(l.pages) }

// reach makes room for an element. Readers with a copy of l do not see it.
func (l *cowList[T]) reach(i uint32, epoch uint64) {
	for !l.has(i) {
		l.pages = append(l.pages, atomic.Pointer[cowPage[T]]{})
		l.pages[len(l.pages)-1].Store(&cowPage[T]{epoch: epoch})
	}
}

// owned returns an element that may be changed, nil if it must be copied first.
func (l *cowList[T]) owned(i uint32, epoch uint64) *T {
	page := l.pages[i/pageLen].Load()
	if page.epochs[i%pageLen] != epoch {
		return nil
	}
	return page.items[i%pageLen].Load()
}

// own returns an element that may be changed: a copy, or a new one if there is none.
func (l *cowList[T]) own(i uint32, epoch uint64) *T {
	if item := l.owned(i, epoch); item != nil {
		return item
	}
	made := new(T)
	if item := l.get(i); item != nil {
		*made = *item
	}
	l.set(i, made, epoch)
	return made
}

// set makes an element of this epoch part of the list.
func (l *cowList[T]) set(i uint32, to *T, epoch uint64) {
	page := l.ownPage(i/pageLen, epoch)
	page.items[i%pageLen].Store(to)
	page.epochs[i%pageLen] = epoch
}

func (l *cowList[T]) ownPage(at uint32, epoch uint64) *cowPage[T] {
	page := l.pages[at].Load()
	if page.epoch == epoch {
		return page
	}
	copied := &cowPage[T]{epoch: epoch, epochs: page.epochs}
	for i := range page.items {
		copied.items[i].Store(page.items[i].Load())
	}
	l.pages[at].Store(copied)
	return copied
}

// truncate removes the last elements; i is the first of them.
func (l *cowList[T]) truncate(i uint32, epoch uint64) {
	pages := (i + pageLen - 1) / pageLen
	clear(l.pages[pages:])
	l.pages = l.pages[:pages]
	for ; i < pages*pageLen && l.get(i) != nil; i++ {
		l.set(i, nil, epoch)
	}
}

// double makes the first n elements, all there are, the next n too. Pages stand in two places
// until they are changed.
func (l *cowList[T]) double(n uint32, epoch uint64) {
	if n < pageLen {
		page := l.ownPage(0, epoch)
		for i := range n {
			page.items[n+i].Store(page.items[i].Load())
			page.epochs[n+i] = page.epochs[i]
		}
		return
	}
	for i := range l.pages {
		l.pages[i].Load().epoch = 0 // which no write has
	}
	l.pages = slices.Concat(l.pages, l.pages)
}

// perCell holds a value for each cell, which only the writer uses: there is one version of it.
type perCell[T any] struct {
	chunks []*[chunkLen]T // nil where no cell has a value
}

func (p *perCell[T]) of(number uint32) (value T) {
	if at := number / chunkLen; int(at) < len(p.chunks) && p.chunks[at] != nil {
		return p.chunks[at][number%chunkLen]
	}
	return value
}

func (p *perCell[T]) set(number uint32, to T) {
	p.reach(number)
	at := &p.chunks[number/chunkLen]
	if *at == nil {
		*at = new([chunkLen]T)
	}
	(*at)[number%chunkLen] = to
}

// reach makes room for the chunk of a cell.
func (p *perCell[T]) reach(number uint32) {
	if more := int(number/chunkLen) + 1 - len(p.chunks); more > 0 {
		p.chunks = append(p.chunks, make([]*[chunkLen]T, more)...)
	}
}

// bitmap is a bit for each cell, 0 until it is set.
type bitmap []uint64

func (b bitmap) get(number uint32) bool {
	return int(number/64) < len(b) && b[number/64]>>(number%64)&1 != 0
}

func (b *bitmap) set(number uint32, to bool) {
	if at := int(number / 64); at >= len(*b) {
		if !to {
			return
		}
		*b = append(*b, make([]uint64, at+1-len(*b))...)
	}
	(*b)[number/64] &^= 1 << (number % 64)
	if to {
		(*b)[number/64] |= 1 << (number % 64)
	}
}
