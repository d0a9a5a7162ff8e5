package cborwire

import (
	"fmt"
	"io"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// maxHeadSize is the length of the longest head in bytes.
const maxHeadSize = 9

// stream reads the values of a body as it arrives.
type stream struct {
	window  *wire.Window
	scanner scanner
	limit   int // bytes of a value
	nesting int // the requested limit; the scanner's own is larger
	// unreleased is the number of unread bytes that value has returned.
	unreleased int
}

func newStream(body io.Reader, first int, limits wire.Limits) stream {
	return stream{
		// The window must have room for a head even if the limit on values is smaller. That limit
		// is checked here.
		window:  wire.NewWindow(body, first, max(limits.ValueBytes, maxHeadSize)),
		scanner: scanner{levels: maxLevels},
		limit:   limits.ValueBytes,
		nesting: limits.Nesting,
	}
}

// release consumes the bytes that value returned.
func (s *stream) release() {
	s.window.Consume(s.unreleased)
	s.unreleased = 0
}

// peek returns the head of the next value without consuming it. io.EOF means that the body ended
// before it.
func (s *stream) peek() (head, error) {
	s.release()
	for {
		unread := s.window.Unread()
		if h, err := parseHead(unread); h.size > 0 || err != nil {
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

var errTag = fmt.Errorf("%w: an unsupported CBOR tag", wire.ErrMalformed)

// head consumes the head of the next value and tags of self-description before it, at most as many
// as a value may have bytes.
func (s *stream) head() (head, error) {
	for range s.limit {
		h, err := s.peek()
		switch {
		case err != nil:
			return head{}, wire.Inside(err)
		case h.major == majorTag && h.argument != tagSelfDescribed:
			return head{}, errTag
		}
		s.window.Consume(h.size)
		if h.major != majorTag {
			return h, nil
		}
	}
	return head{}, s.tooLarge()
}

// value returns the next value, valid until the next read. io.EOF means that the body ended before
// it.
func (s *stream) value() ([]byte, error) {
	s.release()
	s.scanner.restart()
	for {
		unread := s.window.Unread()
		// Never scan beyond the limit, so that the result does not depend on how much has arrived.
		ended, err := s.scanner.scan(unread[:min(len(unread), s.limit)])
		if err != nil {
			if limit, ok := err.(*wire.LimitError); ok {
				limit.Limit = min(limit.Limit, s.nesting)
			}
			return nil, err
		}
		if ended {
			s.unreleased = s.scanner.at
			return unread[:s.unreleased:s.unreleased], nil
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

// elements counts the unread values of an array or a map; a map's entry counts as two.
type elements struct{ left int64 }

// next reports whether there is another element of that many values, and counts it as read.
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
