package cborwire

import (
	"fmt"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// mostLevels is how deep apimachinery's decoder reads.
const mostLevels = 10_000

// scanner finds the end of a value, of which there need be no more than a part; with
// more it continues where it was.
type scanner struct {
	// levels is how many arrays and maps may be open at once.
	levels int

	at int // how far it has looked, beyond what there is if a string's length says so
	// open are the arrays and maps that are: how many values each still lacks, the one at
	// hand included, or untilBreak.
	open   []int64
	chunks byte // the major type of the string of indefinite length that is open, or 0
	ended  bool // the end is at

	// What there was on the way: heads, those of maps, and elements of arrays. Where an array
	// does not say how many it has, growing is set.
	heads, maps, elements int
	growing               bool
}

// restart prepares for another value.
func (s *scanner) restart() {
	*s = scanner{levels: s.levels, open: s.open[:0]}
}

// scan looks at data, which is the value from its beginning and maybe more, and says
// whether it has found the end.
func (s *scanner) scan(data []byte) (bool, error) {
	for !s.ended && s.at < len(data) {
		s.heads++
		if first := data[s.at]; s.chunks == 0 && first < majorArray<<5 && first&0x1f < 24 {
			// A short string or a small number, as most values are.
			if s.at++; first >= majorBytes<<5 {
				s.at += int(first & 0x1f)
			}
			s.leave()
			continue
		}
		h, err := headOf(data[s.at:])
		if err != nil {
			return false, err
		}
		if h.size == 0 {
			s.heads--
			return false, nil
		}
		s.at += h.size
		if s.chunks != 0 {
			err = s.chunk(h)
		} else {
			err = s.value(h)
		}
		if err != nil {
			return false, err
		}
	}
	return s.ended && s.at <= len(data), nil
}

// value takes the head of one.
func (s *scanner) value(h head) error {
	switch {
	case h.major == majorTag:
		return nil // what it is about follows
	case h.major == majorBytes || h.major == majorText:
		if h.indefinite {
			s.chunks = h.major
			return nil
		}
		if err := s.skip(h); err != nil {
			return err
		}
	case h.major == majorArray || h.major == majorMap:
		if elements, err := s.enter(h); elements != 0 || err != nil {
			return err
		}
	case h.isBreak():
		if len(s.open) == 0 || s.open[len(s.open)-1] != untilBreak {
			return errBreak
		}
		s.open = s.open[:len(s.open)-1]
	}
	s.leave()
	return nil
}

// chunk takes the head of a part of a string, or the break behind them.
func (s *scanner) chunk(h head) error {
	switch {
	case h.isBreak():
		s.chunks = 0
		s.leave()
		return nil
	case h.major != s.chunks || h.indefinite:
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

// enter opens an array or map, if it has elements.
func (s *scanner) enter(h head) (int64, error) {
	if len(s.open) == s.levels {
		return 0, &wire.LimitError{What: wire.LimitNesting, Limit: s.levels}
	}
	elements, err := h.elements()
	switch {
	case h.major == majorMap:
		s.maps++
	case elements == untilBreak:
		s.growing = true
	default:
		s.elements += int(min(elements, math.MaxInt32))
	}
	if err == nil && elements != 0 {
		s.open = append(s.open, elements)
	}
	return elements, err
}

// leave counts a value that has ended, and with it the arrays and maps that end there.
func (s *scanner) leave() {
	for last := len(s.open) - 1; last >= 0; last-- {
		if s.open[last] == untilBreak {
			return
		}
		if s.open[last]--; s.open[last] > 0 {
			return
		}
		s.open = s.open[:last]
	}
	s.ended = true
}

var errCut = fmt.Errorf("%w: a CBOR value that is cut off", wire.ErrMalformed)

// cut takes a value off the front of data, which has all of it.
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
