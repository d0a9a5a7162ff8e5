package kubeapi

import (
	"io"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// meter bounds the bytes of a list outside its items to about two values: a decoder bounds each value but not their
// number.
type meter struct {
	body io.Reader
	// left is how many bytes may still be read.
	left  int64
	limit int
}

const (
	// ahead is how far a decoder may read beyond what it has parsed.
	ahead = 64 << 10
	// beside is the number of bytes allowed between two items, for commas and indentation.
	beside = 1 << 10
)

func newMeter(body io.Reader, limit int) *meter {
	m := &meter{body: body, left: ahead, limit: limit}
	m.add(int64(limit))
	m.add(int64(limit))
	return m
}

// allow permits as many more bytes as an item had.
func (m *meter) allow(item int) {
	m.add(int64(item))
	m.add(beside)
}

// add saturates: a limit may be close to the largest int64.
func (m *meter) add(bytes int64) { m.left += min(bytes, math.MaxInt64-m.left) }

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, &wire.LimitError{What: wire.LimitValue, Limit: m.limit}
	}
	n, err := m.body.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}
