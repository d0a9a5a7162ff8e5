package kubeapi

import (
	"hash/maphash"
	"sync"
	"time"
)

// suspects remembers frames and items that ended a watch or list because they may have been damaged
// in transit. One that arrives again unchanged is what the server sends, and is passed on. While
// maxSuspects are remembered, all others are passed on, until suspectLifetime has passed.
// Well-formed frames end a watch at most once every wellFormedInterval.
type suspects struct {
	seed maphash.Seed

	mu   sync.Mutex
	seen map[uint64]struct{} // hashes of the bytes
	// clearAt is the time at which seen is cleared if it has reached maxSuspects.
	clearAt time.Time
	// nextWellFormed is the time from which a well-formed frame may end a watch again.
	nextWellFormed time.Time
}

const (
	// maxSuspects bounds the remembered hashes, and thus the watches and lists ended within
	// suspectLifetime.
	maxSuspects = 64

	suspectLifetime    = time.Hour
	wellFormedInterval = time.Minute
)

// suspect reports whether the watch or list must end because of these bytes, and remembers them.
func (s *suspects) suspect(raw []byte, wellFormed bool) bool {
	hash := maphash.Bytes(s.seed, raw)
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.seen[hash]; known {
		if wellFormed {
			s.nextWellFormed = now.Add(suspectLifetime)
		}
		return false
	}
	if len(s.seen) >= maxSuspects && now.Before(s.clearAt) ||
		wellFormed && now.Before(s.nextWellFormed) {
		return false
	}
	if wellFormed {
		s.nextWellFormed = now.Add(wellFormedInterval)
	}
	if s.seen == nil || len(s.seen) >= maxSuspects {
		s.seen = map[uint64]struct{}{}
		s.clearAt = now.Add(suspectLifetime)
	}
	s.seen[hash] = struct{}{}
	return true
}
