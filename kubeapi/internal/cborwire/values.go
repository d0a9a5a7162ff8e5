package cborwire

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// selfDescribed is the tag that marks data as CBOR and has no other meaning.
const selfDescribed = 55799

// untagged returns a value without that tag, and its head, which is zero if the value is cut off or malformed.
func untagged(value []byte) (head, []byte) {
	for {
		h, err := headOf(value)
		if err != nil || h.size == 0 || h.major != majorTag || h.argument != selfDescribed {
			return h, value
		}
		value = value[h.size:]
	}
}

// text returns the content of a string that was cut out, without a copy if possible.
func text(value []byte) ([]byte, bool) {
	h, err := headOf(value)
	if err != nil || h.size == 0 {
		return nil, false
	}
	switch {
	case h.major == majorBytes && !h.indefinite:
		return value[h.size:], true
	case h.major != majorBytes && h.major != majorText && h.major != majorTag:
		return nil, false
	}
	var decoded string
	if direct.Unmarshal(value, &decoded) != nil {
		return nil, false
	}
	return []byte(decoded), true
}

var (
	errNoMap = fmt.Errorf("%w: a CBOR value that is no map", wire.ErrMalformed)
	errKey   = fmt.Errorf("%w: a field name that is no CBOR string", wire.ErrMalformed)
	errName  = fmt.Errorf("%w: a field whose name is no UTF-8", wire.ErrMalformed)
)

// eachField calls call with each field of a map that was cut out, until it returns an error.
func (s *scanner) eachField(value []byte, call func(name, value []byte) error) error {
	h, rest := untagged(value)
	if h.size == 0 || h.major != majorMap {
		return errNoMap
	}
	left, err := h.elements()
	if err != nil {
		return err
	}
	for rest = rest[h.size:]; left != 0; {
		if left == untilBreak {
			if h, err := headOf(rest); err == nil && h.isBreak() {
				return nil
			}
		} else {
			left -= 2
		}
		var name, field []byte
		if name, rest, err = s.cut(rest); err != nil {
			return err
		}
		if field, rest, err = s.cut(rest); err != nil {
			return err
		}
		name, ok := text(name)
		if !ok {
			return errKey
		}
		if err := call(name, field); err != nil {
			return err
		}
	}
	return nil
}
