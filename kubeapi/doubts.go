package kubeapi

import (
	"hash/maphash"
	"sync"
	"time"
)

// doubts remembers the frames for which a watch was ended because they may have been damaged on the way. One that comes the
// same again is what the server sends, and is passed on. When mostDoubts are remembered, all others are passed on until
// meantFor is over; well-formed frames are doubted at most once every doubtEvery.
type doubts struct {
	seed maphash.Seed

	mu   sync.Mutex
	seen map[uint64]struct{} // hashes of the bytes
	// full is until when no more are remembered than mostDoubts; then seen begins anew.
	full time.Time
	// next is when well-formed bytes may be doubted again.
	next time.Time
}

const (
	// mostDoubts is how many are remembered, and how many watches end within meantFor.
	mostDoubts = 64

	meantFor   = time.Hour
	doubtEvery = time.Minute
)

// doubt says whether the watch is to end for these bytes.
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
