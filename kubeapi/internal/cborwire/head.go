package cborwire

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// The major types of CBOR.
const (
	majorBytes = 2
	majorText  = 3
	majorArray = 4
	majorMap   = 5
	majorTag   = 6
	majorOther = 7
)

// infoNull is what the head of null has beside its major type, which is majorOther.
const infoNull = 22

// head is what a value begins with.
type head struct {
	major byte
	// size is how many bytes the head itself has.
	size int
	// argument is a number, a length in bytes, a count of elements or pairs, a tag; or
	// what stands for one.
	argument uint64
	// indefinite says that a break ends the value; of majorOther it is the break.
	indefinite bool
}

var (
	errHead   = fmt.Errorf("%w: a CBOR value of a reserved form", wire.ErrMalformed)
	errBreak  = fmt.Errorf("%w: a CBOR break where nothing can end", wire.ErrMalformed)
	errChunk  = fmt.Errorf("%w: a part of a CBOR string that is of another type", wire.ErrMalformed)
	errLength = fmt.Errorf("%w: a CBOR value that no memory could hold", wire.ErrMalformed)
)

// headOf reads the head of a value. Its size is 0 if data ends before it does.
func headOf(data []byte) (head, error) {
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

// untilBreak is the count of elements of an array or map of indefinite length.
const untilBreak = -1

// elements is how many values an array or map has, a pair counting two.
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
