package table

import (
	"slices"
	"sync/atomic"
)

// cowList is a list of pieces in pages. Snapshots share both. Pieces and pages have the epoch in
// which they were made; the writer copies those of older epochs before it changes them. Readers may
// load pieces concurrently.
type cowList[T any] struct{ pages []atomic.Pointer[cowPage[T]] }

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
	if pages := l.pages; int(i/pageLen) < len(pages) {
		return pages[i/pageLen].Load().items[i%pageLen].Load()
	}
	return nil
}

// clone copies the list of pages. The pages are copied when they are changed.
func (l *cowList[T]) clone() cowList[T] { return cowList[T]{slices.Clone(l.pages)} }

// grow adds pages until there is one for a piece. Readers with a copy of l do not see it.
func (l *cowList[T]) grow(i uint32, epoch uint64) {
	for int(i/pageLen) >= len(l.pages) {
		l.pages = append(l.pages, atomic.Pointer[cowPage[T]]{})
		l.pages[len(l.pages)-1].Store(&cowPage[T]{epoch: epoch})
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
	page := l.pages[i/pageLen].Load()
	if page.epoch != to.epoch {
		copied := &cowPage[T]{epoch: to.epoch}
		for at := range page.items {
			copied.items[at].Store(page.items[at].Load())
		}
		l.pages[i/pageLen].Store(copied)
		page = copied
	}
	page.items[i%pageLen].Store(to)
}

// double repeats all pages. A page has two positions until it is changed.
func (l *cowList[T]) double() {
	for i := range l.pages {
		l.pages[i].Load().epoch = 0 // no write has epoch 0
	}
	l.pages = slices.Concat(l.pages, l.pages)
}

// perCell has a value for each cell. Only the writer uses it, so it is not versioned.
type perCell[T any] struct {
	chunks []*[chunkLen]T // nil if no cell in it has had a value
}

func (p *perCell[T]) get(number uint32) (value T) {
	if at := number / chunkLen; int(at) < len(p.chunks) && p.chunks[at] != nil {
		return p.chunks[at][number%chunkLen]
	}
	return value
}

func (p *perCell[T]) set(number uint32, to T) {
	at := int(number / chunkLen)
	if more := at + 1 - len(p.chunks); more > 0 {
		p.chunks = append(p.chunks, make([]*[chunkLen]T, more)...)
	}
	if p.chunks[at] == nil {
		p.chunks[at] = new([chunkLen]T)
	}
	p.chunks[at][number%chunkLen] = to
}
