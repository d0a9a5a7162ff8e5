package kubeapi

import (
	"hash/maphash"
	"sync"
	"time"
)

// doubts remembers frames that ended a watch because they may have been damaged in transit. A frame that arrives again
// unchanged is what the server sends, and is passed on. While mostDoubts frames are remembered, all others are passed
// on, until meantFor has passed. Well-formed frames end a watch at most once every doubtEvery.
type doubts struct {
	seed maphash.Seed

	mu   sync.Mutex
	seen map[uint64]struct{} // hashes of the bytes
	// full is the time at which seen is cleared if it has reached mostDoubts.
	full time.Time
	// next is the time from which a well-formed frame may be doubted again.
	next time.Time
}

const (
	// mostDoubts bounds the remembered frames, and thus the watches ended within meantFor.
	mostDoubts = 64

	meantFor   = time.Hour
	doubtEvery = time.Minute
)

// doubt reports whether the watch must end because of these bytes.
func (d *doubts) doubt(raw []byte, wellFormed bool) bool {
	hash, now := maphash.Bytes(d.seed, raw), time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, again := d.seen[hash]; again {
		if wellFormed {
			d.next = now.Add(meantFor)
		}
		return false
	}
	if len(d.seen) >= mostDoubts && now.Before(d.full) || wellFormed && now.Before(d.next) {
		return false
	}
	if wellFormed {
		d.next = now.Add(doubtEvery)
	}
	if d.seen == nil || len(d.seen) >= mostDoubts {
		d.seen = map[uint64]struct{}{}
		d.full = now.Add(meantFor)
	}
	d.seen[hash] = struct{}{}
	return true
}
