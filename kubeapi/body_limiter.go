package kubeapi

import (
	"io"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// bodyLimiter bounds the bytes of a list outside its items to about two values: a decoder bounds
// each value but not their number.
type bodyLimiter struct {
	body io.Reader
	// remaining is how many bytes may still be read.
	remaining int64
	limit     int
}

const (
	// readAhead is how far a decoder may read beyond what it has parsed.
	readAhead = 64 << 10
	// betweenItems is the number of bytes allowed between two items, for commas and indentation.
	betweenItems = 1 << 10
)

func newBodyLimiter(body io.Reader, limit int) *bodyLimiter {
	l := &bodyLimiter{body: body, remaining: readAhead, limit: limit}
	l.add(int64(limit))
	l.add(int64(limit))
	return l
}

// allowItem permits as many more bytes as an item had.
func (l *bodyLimiter) allowItem(size int) {
	l.add(int64(size))
	l.add(betweenItems)
}

// add saturates: a limit may be close to the largest int64.
func (l *bodyLimiter) add(bytes int64) { l.remaining += min(bytes, math.MaxInt64-l.remaining) }

func (l *bodyLimiter) Read(p []byte) (int, error) {
	if l.remaining <= 0 {
		return 0, &wire.LimitError{What: wire.LimitValue, Limit: l.limit}
	}
	n, err := l.body.Read(p[:min(int64(len(p)), l.remaining)])
	l.remaining -= int64(n)
	return n, err
}
