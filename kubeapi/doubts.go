package kubeapi

import (
	"errors"
	"hash/maphash"
	"sync"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// doubts remembers which bytes on a watch were taken for damaged. Such end the watch, and the
// next one, from the same version, brings them again as they were meant. What comes the same
// twice is what the server sends: to end the watch for it each time would mean to stay before
// it for ever.
type doubts struct {
	seed maphash.Seed

	mu   sync.Mutex
	seen map[uint64]struct{} // hashes of the bytes
}

// mostDoubts is how many are remembered. One that was forgotten ends another watch.
const mostDoubts = 64

// first says whether these bytes come for the first time.
func (d *doubts) first(raw []byte) bool {
	hash := maphash.Bytes(d.seed, raw)
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.seen[hash]; ok {
		return false
	}
	if d.seen == nil || len(d.seen) >= mostDoubts {
		d.seen = map[uint64]struct{}{}
	}
	d.seen[hash] = struct{}{}
	return true
}

// damaged says whether an object that could not be decoded is to be asked for again. One that
// is of the encoding's form is not: it says something that its type does not allow, or what is too
// large or too deep, and would say it again.
func (d *doubts) damaged(encoding wire.Encoding, raw []byte, err error) bool {
	return errors.Is(err, ErrMalformed) && !errors.As(err, new(*otherTypeError)) && !encoding.Intact(raw) && d.first(raw)
}
