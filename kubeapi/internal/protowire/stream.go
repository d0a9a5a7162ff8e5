package protowire

import (
	"io"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// stream reads protobuf from a body as it arrives.
type stream struct {
	window *wire.Window
	limit  int // of bytes that are looked at as one piece

	// left is how much of the message at hand has not been consumed. It is at least
	// what was lent.
	left int64
	// lent is how many unread bytes the last take has lent out.
	lent int
}

func newStream(body io.Reader, first int, limits wire.Limits) stream {
	// The window's own limit must have room for a number, however small the limit on
	// values; lengths are checked here, before their bytes are asked for.
	return stream{
		window: wire.NewWindow(body, first, max(limits.ValueBytes, 2*maxVarint)),
		limit:  limits.ValueBytes,
		left:   unbounded,
	}
}

// release takes back what was lent out.
func (s *stream) release() {
	s.consume(s.lent)
	s.lent = 0
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

// tag reads what a field begins with. io.EOF means that the body ended before it.
func (s *stream) tag() (tag, error) {
	value, err := s.varint()
	if err != nil {
		return tag{}, err
	}
	return tagOf(value)
}

// length reads that of a field, which fits into the message at hand.
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

// value lends out that of a field of bytes until release is called.
func (s *stream) value() ([]byte, error) {
	length, err := s.length()
	if err != nil {
		return nil, err
	}
	return s.take(length)
}

// take lends out the next length bytes until release is called.
func (s *stream) take(length int64) ([]byte, error) {
	if length > int64(s.limit) {
		return nil, &wire.LimitError{What: wire.LimitValue, Limit: s.limit}
	}
	n := int(length)
	if n == 0 {
		return []byte{}, nil // not nil, which stands for an absent field
	}
	if err := s.window.Need(n); err != nil {
		return nil, wire.Inside(err)
	}
	s.lent = n
	return s.window.Unread()[:n:n], nil
}

// skip reads over a field that nobody asked for.
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
		if length, err = s.length(); err != nil {
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
		if length -= int64(n); length == 0 {
			return nil
		}
		if err := s.window.Fill(); err != nil {
			return wire.Inside(err)
		}
	}
}
