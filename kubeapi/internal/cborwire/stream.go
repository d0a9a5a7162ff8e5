package cborwire

import (
	"fmt"
	"io"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// largestHead is the size of the longest head, in bytes.
const largestHead = 9

// stream cuts values out of a body as it arrives.
type stream struct {
	window  *wire.Window
	scanner scanner
	limit   int // of bytes of a value
	nesting int // as it was asked for; the scanner looks further
	// lent is how many unread bytes have been lent out.
	lent int
}

func newStream(body io.Reader, first int, limits wire.Limits) stream {
	return stream{
		// The window's own limit must have room for a head, however small the limit on
		// values, which is kept here.
		window:  wire.NewWindow(body, first, max(limits.ValueBytes, largestHead)),
		scanner: scanner{levels: mostLevels},
		limit:   limits.ValueBytes,
		nesting: limits.Nesting,
	}
}

// release takes back what was lent out.
func (s *stream) release() {
	s.window.Consume(s.lent)
	s.lent = 0
}

// peek reads the head of the next value and leaves it there. io.EOF means that the body
// has ended before it.
func (s *stream) peek() (head, error) {
	s.release()
	for {
		unread := s.window.Unread()
		if h, err := headOf(unread); h.size > 0 || err != nil {
			return h, err
		}
		if err := s.window.Fill(); err != nil {
			if len(unread) > 0 {
				err = wire.Inside(err)
			}
			return head{}, err
		}
	}
}

var errTag = fmt.Errorf("%w: a CBOR tag where it could change a value that is cut out", wire.ErrMalformed)

// head reads that of the next value, behind tags of self-description. Of those there may
// be as many as a value may have bytes.
func (s *stream) head() (head, error) {
	for range s.limit {
		h, err := s.peek()
		switch {
		case err != nil:
			return head{}, wire.Inside(err)
		case h.major == majorTag && h.argument != selfDescribed:
			return head{}, errTag
		}
		s.window.Consume(h.size)
		if h.major != majorTag {
			return h, nil
		}
	}
	return head{}, s.tooLarge()
}

// value lends out the next value until anything else is read. io.EOF means that the body
// has ended before it.
func (s *stream) value() ([]byte, error) {
	s.release()
	s.scanner.restart()
	for {
		unread := s.window.Unread()
		// Not a byte beyond the limit is looked at, so that it does not matter how much
		// came with it.
		ended, err := s.scanner.scan(unread[:min(len(unread), s.limit)])
		if err != nil {
			if limit, ok := err.(*wire.LimitError); ok {
				limit.Limit = min(limit.Limit, s.nesting)
			}
			return nil, err
		}
		if ended {
			s.lent = s.scanner.at
			return unread[:s.lent:s.lent], nil
		}
		if s.scanner.at > s.limit || len(unread) >= s.limit {
			return nil, s.tooLarge()
		}
		if err := s.window.Fill(); err != nil {
			if len(unread) > 0 {
				err = wire.Inside(err)
			}
			return nil, err
		}
	}
}

func (s *stream) tooLarge() error {
	return &wire.LimitError{What: wire.LimitValue, Limit: s.limit}
}

// elements are those of an array, or of a map, that have not been read; twice as many
// for a map.
type elements struct{ left int64 }

// next says whether there is another one, of so many values, and counts it as read.
func (e *elements) next(s *stream, values int64) (bool, error) {
	switch {
	case e.left == 0:
		return false, nil
	case e.left != untilBreak:
		e.left -= values
		return true, nil
	}
	h, err := s.peek()
	if err != nil {
		return false, wire.Inside(err)
	}
	if !h.isBreak() {
		return true, nil
	}
	s.window.Consume(h.size)
	e.left = 0
	return false, nil
}
