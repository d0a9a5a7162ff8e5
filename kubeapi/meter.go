package kubeapi

import (
	"io"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// meter is the body of a list without an end in sight: the bytes beside the items may be as many as two values, since a
// decoder bounds each piece, but not their number.
type meter struct {
	body io.Reader
	// left is how much may still be read.
	left  int64
	limit int
}

const (
	// ahead is what a decoder may have read beyond what it has looked at.
	ahead = 64 << 10
	// beside is what may stand between two items: a comma, and blanks of people who like
	// their JSON indented.
	beside = 1 << 10
)

func newMeter(body io.Reader, limit int) *meter {
	m := &meter{body: body, left: ahead, limit: limit}
	m.add(int64(limit))
	m.add(int64(limit))
	return m
}

// allow lets as much more be read as an item had.
func (m *meter) allow(item int) {
	m.add(int64(item))
	m.add(beside)
}

// add stays at the largest number: a limit may be near it.
func (m *meter) add(bytes int64) { m.left += min(bytes, math.MaxInt64-m.left) }

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, &wire.LimitError{What: wire.LimitValue, Limit: m.limit}
	}
	n, err := m.body.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}
