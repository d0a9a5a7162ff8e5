package kubeapi

import (
	"hash/maphash"
	"sync"
	"time"
)

// doubts remembers which frames of watches were considered damaged on the way. Such a frame
// ends its watch, and the next one, from the same version, brings it again as it was meant.
// A frame that comes the same twice is what the server sends: to end the watch for it each
// time would mean to stay before it for ever. It is passed on.
//
// A stream may have more such frames than are remembered. If any were forgotten for others, each
// watch would end at the first of those. So when mostDoubts are remembered, all others are passed on
// until they are forgotten together, after meantFor.
//
// A frame that is well-formed and could not be decoded is more often meant than damaged.
// Servers that send such must not lose a watch for each: one that was meant is followed by
// meantFor without such doubts, and any by doubtEvery.
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
