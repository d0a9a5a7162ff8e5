package etcd

import "sync"

const (
	// maxPageSize is the number of keys in one request if the list has no limit; the same as in API
	// servers.
	maxPageSize = 500
	// growAfter is the number of full pages in a row after which a smaller page grows. If the
	// larger one fails again, one request of nine was in vain.
	growAfter = 8
)

// pageSize is the number of keys that a source requests at once. It is halved when a page was
// larger than the client accepts, or took too long, and doubled after growAfter full pages.
type pageSize struct {
	mu   sync.Mutex
	keys int64
	// full is the number of full pages since the last change.
	full int
	// untried is the size before a smaller page failed, the rest of a list with a limit; 0 if a
	// page of the full size has failed. That page showed nothing about larger ones, so the size
	// grows to this one at once.
	untried int64
}

func newPageSize() *pageSize { return &pageSize{keys: maxPageSize} }

// get returns the current size.
func (p *pageSize) get() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys
}

// halve records that a page of a size has failed. It returns false if it cannot be smaller. A page
// of one key, as for a check of the version, shows nothing about larger ones.
func (p *pageSize) halve(failed int64) bool {
	if failed <= 1 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = 0
	if failed < p.keys {
		p.untried = max(p.untried, p.keys)
	} else {
		p.untried = 0
	}
	p.keys = min(p.keys, failed/2)
	return true
}

// accept records a page of a size that has succeeded, and the number of its keys.
func (p *pageSize) accept(size int64, keys int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if size != p.keys || int64(keys) < size {
		return
	}
	p.full++
	if p.full == growAfter {
		p.full = 0
		p.keys = max(min(2*p.keys, maxPageSize), p.untried)
		p.untried = 0
	}
}
