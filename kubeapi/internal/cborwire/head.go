package cborwire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Major types of CBOR.
const (
	majorBytes = 2
	majorText  = 3
	majorArray = 4
	majorMap   = 5
	majorTag   = 6
	majorOther = 7
)

// infoNull is the additional information of null, whose major type is majorOther.
const infoNull = 22

// head is the initial byte of a value and its argument.
type head struct {
	major byte
	// size is the length of the head in bytes.
	size int
	// argument is a number, a length in bytes, a count of elements or pairs, a tag, or a simple
	// value.
	argument uint64
	// indefinite means that a break ends the value; for majorOther, that it is the break.
	indefinite bool
}

var (
	errHead   = fmt.Errorf("%w: a reserved CBOR encoding", wire.ErrMalformed)
	errBreak  = fmt.Errorf("%w: an unexpected CBOR break", wire.ErrMalformed)
	errChunk  = fmt.Errorf("%w: a chunk of a CBOR string of another type", wire.ErrMalformed)
	errLength = fmt.Errorf("%w: a CBOR length that is too large", wire.ErrMalformed)
)

// parseHead reads the head of a value. Its size is 0 if data ends before the head does.
func parseHead(data []byte) (head, error) {
	if len(data) == 0 {
		return head{}, nil
	}
	h := head{major: data[0] >> 5, size: 1}
	info := data[0] & 0x1f
	switch {
	case info < 24:
		h.argument = uint64(info)
		return h, nil
	case info < 28:
		h.size += 1 << (info - 24)
	case info == 31 && h.major >= majorBytes && h.major != majorTag:
		h.indefinite = true
		return h, nil
	default:
		return head{}, errHead
	}
	if len(data) < h.size {
		return head{}, nil
	}
	switch argument := data[1:h.size]; len(argument) {
	case 1:
		h.argument = uint64(argument[0])
	case 2:
		h.argument = uint64(binary.BigEndian.Uint16(argument))
	case 4:
		h.argument = uint64(binary.BigEndian.Uint32(argument))
	default:
		h.argument = binary.BigEndian.Uint64(argument)
	}
	return h, nil
}

func (h head) isBreak() bool { return h.major == majorOther && h.indefinite }

func (h head) isNull() bool {
	return h.major == majorOther && h.size == 1 && h.argument == infoNull && !h.indefinite
}

// untilBreak is the element count of an array or map of indefinite length.
const untilBreak = -1

// elements returns the number of values in an array or map; a pair counts as two.
func (h head) elements() (int64, error) {
	each := uint64(h.major - majorArray + 1)
	switch {
	case h.indefinite:
		return untilBreak, nil
	case h.argument > math.MaxInt64/2:
		return 0, errLength
	}
	return int64(each * h.argument), nil
}
