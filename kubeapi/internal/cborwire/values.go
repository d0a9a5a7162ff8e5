package cborwire

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// tagSelfDescribed is the tag that marks data as CBOR and has no other meaning.
const tagSelfDescribed = 55799

// untagged returns a value without that tag, and its head, which is zero if the value is truncated
// or malformed.
func untagged(value []byte) (head, []byte) {
	for {
		h, err := parseHead(value)
		if err != nil || h.size == 0 || h.major != majorTag || h.argument != tagSelfDescribed {
			return h, value
		}
		value = value[h.size:]
	}
}

// text returns the content of a complete string value, without a copy if possible.
func text(value []byte) ([]byte, bool) {
	h, err := parseHead(value)
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
	errNotMap        = fmt.Errorf("%w: a CBOR value that is not a map", wire.ErrMalformed)
	errFieldNameType = fmt.Errorf("%w: a field name that is not a CBOR string", wire.ErrMalformed)
	errFieldNameUTF8 = fmt.Errorf("%w: a field name that is not UTF-8", wire.ErrMalformed)
)

// eachField calls call with each field of a complete map, until it returns an error.
func (s *scanner) eachField(value []byte, call func(name, value []byte) error) error {
	h, rest := untagged(value)
	if h.size == 0 || h.major != majorMap {
		return errNotMap
	}
	left, err := h.elements()
	if err != nil {
		return err
	}
	for rest = rest[h.size:]; left != 0; {
		if left == untilBreak {
			if h, err := parseHead(rest); err == nil && h.isBreak() {
				return nil
			}
		} else {
			left -= 2
		}
		var name, field []byte
		name, rest, err = s.cut(rest)
		if err != nil {
			return err
		}
		field, rest, err = s.cut(rest)
		if err != nil {
			return err
		}
		name, ok := text(name)
		if !ok {
			return errFieldNameType
		}
		if err := call(name, field); err != nil {
			return err
		}
	}
	return nil
}
