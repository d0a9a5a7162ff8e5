package protowire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Wire types of protobuf. 3 and 4 begin and end a group.
const (
	typeVarint  = 0
	typeFixed64 = 1
	typeBytes   = 2
	typeFixed32 = 5
)

var (
	errVarint  = fmt.Errorf("%w: a protobuf number of more than 64 bits", wire.ErrMalformed)
	errLength  = fmt.Errorf("%w: a protobuf field that exceeds its container", wire.ErrMalformed)
	errNumber  = fmt.Errorf("%w: a protobuf field number that is not positive", wire.ErrMalformed)
	errGroup   = fmt.Errorf("%w: a protobuf group", wire.ErrMalformed)
	errUnknown = fmt.Errorf("%w: an unknown protobuf wire type", wire.ErrMalformed)
)

// maxVarint is the length of the longest varint in bytes.
const maxVarint = binary.MaxVarintLen64

// varint reads a number from the front of data and returns its length: 0 if data is too short,
// negative if the number is too long. Bits of the tenth byte beyond 64 are dropped, as in generated
// code, so that both read the same.
func varint(data []byte) (uint64, int) {
	var value uint64
	for i, b := range data {
		if i == maxVarint {
			return 0, -1
		}
		value |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return value, i + 1
		}
	}
	if len(data) >= maxVarint {
		return 0, -1
	}
	return 0, 0
}

// tag is the beginning of a field.
type tag struct {
	number   int32
	wireType byte
}

func parseTag(value uint64) (tag, error) {
	t := tag{number: int32(value >> 3), wireType: byte(value & 7)}
	switch {
	case t.number <= 0:
		return t, errNumber
	case t.wireType == 3 || t.wireType == 4:
		return t, errGroup
	case t.wireType > typeFixed32:
		return t, errUnknown
	}
	return t, nil
}

// requireBytes returns an error if the field is not a string, bytes or a message.
func (t tag) requireBytes(what string) error {
	if t.wireType != typeBytes {
		return fmt.Errorf("%w: %s has the wire type %d", wire.ErrMalformed, what, t.wireType)
	}
	return nil
}

// nextField reads a field from the front of a complete message. value is a part of data, and set
// only for strings, bytes and messages.
func nextField(data []byte) (t tag, value, rest []byte, err error) {
	number, rest, err := nextVarint(data)
	if err != nil {
		return t, nil, nil, err
	}
	t, err = parseTag(number)
	if err != nil {
		return t, nil, nil, err
	}
	length := uint64(0)
	switch t.wireType {
	case typeVarint:
		_, rest, err = nextVarint(rest)
		return t, nil, rest, err
	case typeFixed64:
		length = 8
	case typeFixed32:
		length = 4
	default:
		length, rest, err = nextVarint(rest)
		if err != nil {
			return t, nil, nil, err
		}
	}
	if length > uint64(len(rest)) {
		return t, nil, nil, errLength
	}
	if t.wireType == typeBytes {
		value = rest[:length]
	}
	return t, value, rest[length:], nil
}

// fieldEnd returns the length of the field at the front of data, or 0 if data is too short. data
// may be only the beginning of a message of size bytes.
func fieldEnd(data []byte, size int) (int, error) {
	number, tagSize := varint(data)
	if tagSize < 0 {
		return 0, errVarint
	}
	if tagSize == 0 {
		return 0, nil
	}
	t, err := parseTag(number)
	if err != nil {
		return 0, err
	}
	length := uint64(0)
	lengthSize := 0
	switch t.wireType {
	case typeFixed64:
		length = 8
	case typeFixed32:
		length = 4
	default:
		length, lengthSize = varint(data[tagSize:])
		switch {
		case lengthSize < 0:
			return 0, errVarint
		case lengthSize == 0:
			return 0, nil
		case t.wireType == typeVarint:
			length = 0
		}
	}
	if length > uint64(size) || tagSize+lengthSize+int(length) > size {
		return 0, errLength
	}
	return tagSize + lengthSize + int(length), nil
}

func nextVarint(data []byte) (uint64, []byte, error) {
	value, n := varint(data)
	switch {
	case n < 0:
		return 0, nil, errVarint
	case n == 0:
		return 0, nil, errLength
	}
	return value, data[n:], nil
}

// unbounded is the length of a message that ends with the body.
const unbounded = math.MaxInt64
