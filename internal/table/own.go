package table

import "sync/atomic"

// Pieces of a state that a write may change: those that are its own, by the epoch in which they
// were made. Of others, which a snapshot may have, it makes copies.

// clone makes a state that may be changed; its parts belong to others as yet.
func (s *state) clone() *state {
	c := *s
	c.pages = copyList(s.pages, len(s.pages))
	c.indexes = append([]*index(nil), s.indexes...)
	return &c
}

// copyList makes a list of its own, with room for more.
func copyList[T any](list []atomic.Pointer[T], room int) []atomic.Pointer[T] {
	c := make([]atomic.Pointer[T], room)
	for i := range list {
		c[i].Store(list[i].Load())
	}
	return c
}

// reshape changes what a reader reads without care: it gets another state for that.
func (w *Write) reshape(change func(*state)) {
	if w.aside {
		change(w.s)
		return
	}
	s := *w.s
	change(&s)
	w.s = &s
	w.state.Store(w.s)
}

// ownChunk makes the chunk of a cell one that may be changed, and says where it is.
func (w *Write) ownChunk(number uint32) (p *page, at uint32) {
	p, at = w.ownPage(number/perPage), number/chunkLen%pageLen
	c := p.chunks[at].Load()
	if c != nil && p.owners[at] == w.epoch {
		return p, at
	}
	owned := new(chunk)
	if c != nil {
		c.copyTo(owned)
	}
	p.chunks[at].Store(owned)
	p.owners[at] = w.epoch
	w.shortcut(number/chunkLen, owned)
	return p, at
}

// shortcut makes a chunk the one that readers come to. Aside there may be no room for it.
func (w *Write) shortcut(at uint32, to *chunk) {
	if int(at) >= len(w.s.short.chunks) {
		w.s.short = w.s.withRoom(at * chunkLen)
	}
	w.s.short.chunks[at].Store(to)
}

func (w *Write) ownPage(number uint32) *page {
	if int(number) >= len(w.s.pages) {
		w.reshape(func(s *state) { s.pages = copyList(s.pages, int(number)+1) })
	}
	at := &w.s.pages[number]
	p := at.Load()
	switch {
	case p == nil:
		p = &page{owner: w.epoch}
		at.Store(p)
	case p.owner != w.epoch:
		copied := &page{owner: w.epoch, owners: p.owners, kinds: p.kinds}
		for i := range p.chunks {
			copied.chunks[i].Store(p.chunks[i].Load())
		}
		p = copied
		at.Store(p)
	}
	return p
}
