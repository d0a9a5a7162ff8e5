package table

import (
	"slices"
	"sync/atomic"
)

// cowList is a list of pieces in pages. Snapshots share both. Pieces and pages have the epoch in
// which they were made; the writer copies those of older epochs before it changes them. Readers may
// load pieces concurrently.
type cowList[T any] struct {
	pages []atomic.Pointer[cowPage[T]]
}

type cowPage[T any] struct {
	epoch uint64
	items [pageLen]atomic.Pointer[piece[T]]
}

type piece[T any] struct {
	epoch uint64
	value T
}

const pageLen = 32

// get returns a piece, nil if there is none.
func (l *cowList[T]) get(i uint32) *piece[T] {
	pages := l.pages
	if int(i/pageLen) >= len(pages) {
		return nil
	}
	return pages[i/pageLen].Load().items[i%pageLen].Load()
}

// clone copies the list of pages. The pages are copied when they are changed.
func (l *cowList[T]) clone() cowList[T] {
	pages := slices.Clone(l.pages)
	return cowList[T]{pages}
}

// grow adds pages until there is one for a piece. Readers with a copy of l do not see it.
func (l *cowList[T]) grow(i uint32, epoch uint64) {
	for int(i/pageLen) >= len(l.pages) {
		l.pages = append(l.pages, atomic.Pointer[cowPage[T]]{})
		added := &l.pages[len(l.pages)-1]
		added.Store(&cowPage[T]{epoch: epoch})
	}
}

// writable returns the value of a piece that may be changed: a copy if it is of an older epoch, or
// a new one if there is none.
func (l *cowList[T]) writable(i uint32, epoch uint64) *T {
	p := l.get(i)
	if p == nil || p.epoch != epoch {
		made := &piece[T]{epoch: epoch}
		if p != nil {
			made.value = p.value
		}
		l.set(i, made)
		p = made
	}
	return &p.value
}

// set makes a piece of the current epoch part of the list.
func (l *cowList[T]) set(i uint32, to *piece[T]) {
	l.grow(i, to.epoch)
	position := &l.pages[i/pageLen]
	page := position.Load()
	if page.epoch != to.epoch {
		page = page.copy(to.epoch)
		position.Store(page)
	}
	page.items[i%pageLen].Store(to)
}

func (p *cowPage[T]) copy(epoch uint64) *cowPage[T] {
	copied := &cowPage[T]{epoch: epoch}
	for at := range p.items {
		item := p.items[at].Load()
		copied.items[at].Store(item)
	}
	return copied
}

// double repeats all pages. A page has two positions until it is changed.
func (l *cowList[T]) double() {
	for i := range l.pages {
		page := l.pages[i].Load()
		page.epoch = 0 // no write has epoch 0
	}
	l.pages = slices.Concat(l.pages, l.pages)
}

// perCell has a value for each cell. Only the writer uses it, so it is not versioned.
type perCell[T any] struct {
	chunks []*[chunkLen]T // nil if no cell in it has had a value
}

func (p *perCell[T]) get(number uint32) (value T) {
	at := int(number / chunkLen)
	if at >= len(p.chunks) {
		return value
	}
	chunk := p.chunks[at]
	if chunk == nil {
		return value
	}
	return chunk[number%chunkLen]
}

func (p *perCell[T]) set(number uint32, to T) {
	at := int(number / chunkLen)
	missing := at + 1 - len(p.chunks)
	if missing > 0 {
		more := make([]*[chunkLen]T, missing)
		p.chunks = append(p.chunks, more...)
	}
	chunk := p.chunks[at]
	if chunk == nil {
		chunk = new([chunkLen]T)
		p.chunks[at] = chunk
	}
	chunk[number%chunkLen] = to
}
