package cborwire

import (
	"fmt"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// maxLevels is the depth limit of apimachinery's decoder.
const maxLevels = 10_000

// scanner finds the end of a value. It can scan a partial value and continue when there is more.
type scanner struct {
	// levels bounds the number of open arrays and maps.
	levels int

	at int // scanned up to here; beyond the data if a string is longer
	// open has the number of missing values of each open array and map, the current one included,
	// or untilBreak.
	open         []int64
	chunkedMajor byte // the major type of an open string of indefinite length, or 0
	ended        bool // the end was found

	// Counts so far: heads, heads of maps, and elements of arrays. growing is set if an array did
	// not state its length.
	heads, maps, elements int
	indefiniteArrays      bool
}

// restart prepares for another value.
func (s *scanner) restart() {
	*s = scanner{levels: s.levels, open: s.open[:0]}
}

// scan scans data, which must start with the value, and reports whether it found the end.
func (s *scanner) scan(data []byte) (bool, error) {
	for !s.ended && s.at < len(data) {
		s.heads++
		if first := data[s.at]; s.chunkedMajor == 0 && first < majorArray<<5 && first&0x1f < 24 {
			// A short string or small number, as most values are.
			s.at++
			if first >= majorBytes<<5 {
				s.at += int(first & 0x1f)
			}
			s.finishValue()
			continue
		}
		h, err := parseHead(data[s.at:])
		if err != nil {
			return false, err
		}
		if h.size == 0 {
			s.heads--
			return false, nil
		}
		s.at += h.size
		if s.chunkedMajor != 0 {
			err = s.scanChunk(h)
		} else {
			err = s.scanHead(h)
		}
		if err != nil {
			return false, err
		}
	}
	return s.ended && s.at <= len(data), nil
}

// scanHead processes the head of a value.
func (s *scanner) scanHead(h head) error {
	switch {
	case h.major == majorTag:
		return nil // the tagged value follows
	case h.major == majorBytes || h.major == majorText:
		if h.indefinite {
			s.chunkedMajor = h.major
			return nil
		}
		if err := s.skip(h); err != nil {
			return err
		}
	case h.major == majorArray || h.major == majorMap:
		if elements, err := s.openContainer(h); elements != 0 || err != nil {
			return err
		}
	case h.isBreak():
		if len(s.open) == 0 || s.open[len(s.open)-1] != untilBreak {
			return errBreak
		}
		s.open = s.open[:len(s.open)-1]
	}
	s.finishValue()
	return nil
}

// scanChunk processes the head of a chunk of a string, or the break after the chunks.
func (s *scanner) scanChunk(h head) error {
	switch {
	case h.isBreak():
		s.chunkedMajor = 0
		s.finishValue()
		return nil
	case h.major != s.chunkedMajor || h.indefinite:
		return errChunk
	}
	return s.skip(h)
}

func (s *scanner) skip(h head) error {
	if h.argument > math.MaxInt/2 {
		return errLength
	}
	s.at += int(h.argument)
	return nil
}

// openContainer opens an array or map if it has elements.
func (s *scanner) openContainer(h head) (int64, error) {
	if len(s.open) == s.levels {
		return 0, &wire.LimitError{What: wire.LimitNesting, Limit: s.levels}
	}
	elements, err := h.elements()
	switch {
	case h.major == majorMap:
		s.maps++
	case elements == untilBreak:
		s.indefiniteArrays = true
	default:
		s.elements += int(min(elements, math.MaxInt32))
	}
	if err == nil && elements != 0 {
		s.open = append(s.open, elements)
	}
	return elements, err
}

// finishValue counts a finished value, and closes the arrays and maps that end with it.
func (s *scanner) finishValue() {
	for last := len(s.open) - 1; last >= 0; last-- {
		if s.open[last] == untilBreak {
			return
		}
		s.open[last]--
		if s.open[last] > 0 {
			return
		}
		s.open = s.open[:last]
	}
	s.ended = true
}

var errCut = fmt.Errorf("%w: a truncated CBOR value", wire.ErrMalformed)

// cut splits data after its first value, which must be complete.
func (s *scanner) cut(data []byte) (value, rest []byte, err error) {
	s.restart()
	ended, err := s.scan(data)
	switch {
	case err != nil:
		return nil, nil, err
	case !ended:
		return nil, nil, errCut
	}
	return data[:s.at], data[s.at:], nil
}
