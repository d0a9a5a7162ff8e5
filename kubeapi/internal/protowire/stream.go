package protowire

import (
	"io"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// stream reads protobuf from a body as it arrives.
type stream struct {
	window *wire.Window
	limit  int // bytes of one value

	// left is the number of unconsumed bytes of the current message, at least unreleased.
	left int64
	// unreleased is the number of unread bytes that the last take has returned.
	unreleased int
}

func newStream(body io.Reader, first int, limits wire.Limits) stream {
	// The window must have room for a number even if the limit on values is smaller. Lengths are
	// checked here before their bytes are read.
	return stream{
		window: wire.NewWindow(body, first, max(limits.ValueBytes, 2*maxVarint)),
		limit:  limits.ValueBytes,
		left:   unbounded,
	}
}

// release consumes the bytes that take returned.
func (s *stream) release() {
	s.consume(s.unreleased)
	s.unreleased = 0
}

func (s *stream) consume(n int) {
	s.window.Consume(n)
	if s.left != unbounded {
		s.left -= int64(n)
	}
}

// varint reads a number. io.EOF means that the body ended before it.
func (s *stream) varint() (uint64, error) {
	for {
		value, n := varint(s.window.Unread())
		switch {
		case n < 0:
			return 0, errVarint
		case int64(n) > s.left:
			return 0, errLength
		case n > 0:
			s.consume(n)
			return value, nil
		}
		if err := s.window.Fill(); err != nil {
			if len(s.window.Unread()) > 0 {
				err = wire.Inside(err)
			}
			return 0, err
		}
	}
}

// tag reads the beginning of a field. io.EOF means that the body ended before it.
func (s *stream) tag() (tag, error) {
	value, err := s.varint()
	if err != nil {
		return tag{}, err
	}
	return parseTag(value)
}

// length reads the length of a field and checks that it fits into the current message.
func (s *stream) length() (int64, error) {
	value, err := s.varint()
	switch {
	case err != nil:
		return 0, wire.Inside(err)
	case value > uint64(s.left):
		return 0, errLength
	}
	return int64(value), nil
}

// value reads a length and returns that many bytes, valid until release is called.
func (s *stream) value() ([]byte, error) {
	length, err := s.length()
	if err != nil {
		return nil, err
	}
	return s.take(length)
}

// take returns the next length bytes, valid until release is called.
func (s *stream) take(length int64) ([]byte, error) {
	if length > int64(s.limit) {
		return nil, &wire.LimitError{What: wire.LimitValue, Limit: s.limit}
	}
	n := int(length)
	if n == 0 {
		return []byte{}, nil // not nil, which means an absent field
	}
	if err := s.window.Need(n); err != nil {
		return nil, wire.Inside(err)
	}
	s.unreleased = n
	return s.window.Unread()[:n:n], nil
}

// skip skips an unknown field.
func (s *stream) skip(t tag) error {
	length := int64(0)
	var err error
	switch t.wireType {
	case typeVarint:
		_, err = s.varint()
		return wire.Inside(err)
	case typeFixed64:
		length = 8
	case typeFixed32:
		length = 4
	default:
		length, err = s.length()
		if err != nil {
			return err
		}
		if length > int64(s.limit) {
			return &wire.LimitError{What: wire.LimitValue, Limit: s.limit}
		}
	}
	if length > s.left {
		return errLength
	}
	for {
		n := int(min(length, int64(len(s.window.Unread()))))
		s.consume(n)
		length -= int64(n)
		if length == 0 {
			return nil
		}
		if err := s.window.Fill(); err != nil {
			return wire.Inside(err)
		}
	}
}
