package kubeapi

import (
	"io"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// meter is the body of a list that may not go on for ever. A list may have any number of
// items; what stands beside them (fields that nobody asked for, their names, blanks) may
// have two values' worth of bytes in all, of which one may be what is being read.
//
// A decoder bounds each piece, and whoever sends small ones without end would be read
// without end.
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
	return &meter{body: body, left: 2*int64(limit) + ahead, limit: limit}
}

// allow lets as much more be read as an item had.
func (m *meter) allow(item int) { m.left += int64(item) + beside }

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, &wire.LimitError{What: wire.LimitValue, Limit: m.limit}
	}
	n, err := m.body.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}
