package cborwire

import (
	"fmt"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Cut copies the wanted entries of a map. It writes maps of indefinite length, since the number of
// entries is not known in advance. A duplicate field is kept, for the decoder to refuse.
//
// If only some fields of a value are wanted and the value is neither a map nor an array, it becomes
// null, as in JSON. A tag other than self-description has the same effect.
func (encoding) Cut(dst, raw []byte, wanted *wire.Fields, limits wire.Limits) ([]byte, error) {
	h, raw := untagged(raw)
	if h.size == 0 || h.major != majorMap {
		return dst, errNotMap
	}
	c := cutter{cut: dst, nesting: limits.Nesting, scanner: scanner{levels: maxLevels}}
	rest, err := c.mapValue(h, raw, wanted.Names)
	if err == nil && len(rest) > 0 {
		err = errTrailingData
	}
	return c.cut, err
}

var errTrailingData = fmt.Errorf("%w: data after a CBOR value", wire.ErrMalformed)

// cutter walks through an object once.
type cutter struct {
	scanner scanner // for values that are kept or dropped whole
	cut     []byte
	depth   int
	nesting int
}

// The bytes of a map of indefinite length, of its break, and of null.
const (
	indefiniteMap = majorMap<<5 | 31
	breakByte     = majorOther<<5 | 31
	null          = majorOther<<5 | infoNull
)

// mapValue copies the wanted fields of the map at the front of data, and returns the bytes after
// the map.
func (c *cutter) mapValue(h head, data []byte, wanted *wire.Names) ([]byte, error) {
	left, err := c.enter(h)
	if err != nil {
		return nil, err
	}
	c.cut = append(c.cut, indefiniteMap)
	for rest := data[h.size:]; ; {
		if left == 0 || left == untilBreak && isBreak(rest) {
			c.depth--
			c.cut = append(c.cut, breakByte)
			return skipBreak(rest, left), nil
		}
		if left != untilBreak {
			left -= 2
		}
		var key []byte
		key, rest, err = c.scanner.cut(rest)
		if err != nil {
			return nil, err
		}
		name, ok := text(key)
		if !ok {
			return nil, errFieldNameType
		}
		below := wanted.Find(name)
		if below == nil {
			_, rest, err = c.scanner.cut(rest)
		} else {
			c.cut = append(c.cut, key...)
			rest, err = c.value(rest, below)
		}
		if err != nil {
			return nil, err
		}
	}
}

func (c *cutter) array(h head, data []byte, wanted *wire.Names) ([]byte, error) {
	left, err := c.enter(h)
	if err != nil {
		return nil, err
	}
	c.cut = append(c.cut, data[:h.size]...)
	for rest := data[h.size:]; ; {
		if left == 0 || left == untilBreak && isBreak(rest) {
			c.depth--
			if left == untilBreak {
				c.cut = append(c.cut, breakByte)
			}
			return skipBreak(rest, left), nil
		}
		if left != untilBreak {
			left--
		}
		rest, err = c.value(rest, wanted)
		if err != nil {
			return nil, err
		}
	}
}

// value copies the wanted parts of the value at the front of data: all of it, or some fields.
func (c *cutter) value(data []byte, wanted *wire.Names) (rest []byte, err error) {
	if wanted.Whole {
		value, rest, err := c.scanner.cut(data)
		c.cut = append(c.cut, value...)
		return rest, err
	}
	switch h, bare := untagged(data); {
	case h.size > 0 && h.major == majorMap:
		return c.mapValue(h, bare, wanted)
	case h.size > 0 && h.major == majorArray:
		return c.array(h, bare, wanted)
	}
	c.cut = append(c.cut, null)
	_, rest, err = c.scanner.cut(data)
	return rest, err
}

// enter returns the number of values in an array or map.
func (c *cutter) enter(h head) (int64, error) {
	c.depth++
	if c.depth > c.nesting {
		return 0, &wire.LimitError{What: wire.LimitNesting, Limit: c.nesting}
	}
	return h.elements()
}

func isBreak(data []byte) bool {
	h, err := parseHead(data)
	return err == nil && h.isBreak()
}

// skipBreak skips the break after a value of indefinite length.
func skipBreak(data []byte, left int64) []byte {
	if left == untilBreak {
		return data[1:]
	}
	return data
}
