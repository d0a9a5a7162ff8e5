package jsonwire

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Cut copies an object field by field, those that are wanted. Of the others it looks for
// the end alone, as when the object was cut out of its body. Fields of one name are all
// kept, in their order, for the decoder to say what they come to.
//
// Where fields of a value are wanted and it is neither an object nor an array, it has none,
// and comes out as null: as nothing at all it would give way to an earlier field of its
// name, or to the next element of its array.
func (encoding) Cut(dst, raw []byte, wanted *wire.Fields, limits wire.Limits) ([]byte, error) {
	if err := checkObject(raw); err != nil {
		return dst, err
	}
	c := cutter{data: raw, cut: dst, nesting: limits.Nesting}
	c.token()
	if err := c.object(wanted.Names); err != nil {
		return c.cut, err
	}
	if c.token(); c.at < len(raw) {
		return c.cut, c.unexpected("the end")
	}
	return c.cut, nil
}

// cutter walks through an object once.
type cutter struct {
	data    []byte
	at      int
	cut     []byte // the kept part of everything before at
	depth   int
	nesting int
}

// token moves past blanks and returns the byte behind them; 0, which no token is, at the end.
func (c *cutter) token() byte {
	c.at = skipBlanks(c.data, c.at)
	if c.at == len(c.data) {
		return 0
	}
	return c.data[c.at]
}

// object moves past an object that begins at the cutter's place, and keeps its wanted
// fields.
func (c *cutter) object(wanted *wire.Names) error {
	if err := c.enter('{'); err != nil {
		return err
	}
	begin := len(c.cut)
	for first := true; ; first = false {
		token := c.token()
		if token == '}' {
			c.leave('}')
			return nil
		}
		if !first {
			if token != ',' {
				return c.unexpected("a comma or the end of the object")
			}
			c.at++
			token = c.token()
		}
		if token != '"' {
			return c.unexpected("the name of a field")
		}
		name, err := c.skip()
		if err != nil {
			return err
		}
		if c.token() != ':' {
			return c.unexpected("a colon")
		}
		c.at++
		below := find(wanted, name)
		if below == nil {
			if _, err := c.skip(); err != nil {
				return err
			}
			continue
		}
		if len(c.cut) > begin {
			c.cut = append(c.cut, ',')
		}
		c.cut = append(append(c.cut, name...), ':')
		if err := c.value(below); err != nil {
			return err
		}
	}
}

// value moves past a value, and keeps the wanted parts: all, or fields of it.
func (c *cutter) value(wanted *wire.Names) error {
	switch token := c.token(); {
	case wanted.Whole:
		value, err := c.skip()
		c.cut = append(c.cut, value...)
		return err
	case token == '{':
		return c.object(wanted)
	case token == '[':
		return c.array(wanted)
	}
	_, err := c.skip()
	c.cut = append(c.cut, "null"...)
	return err
}

func (c *cutter) array(wanted *wire.Names) error {
	if err := c.enter('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		token := c.token()
		if token == ']' {
			c.leave(']')
			return nil
		}
		if !first {
			if token != ',' {
				return c.unexpected("a comma or the end of the array")
			}
			c.at++
			c.cut = append(c.cut, ',')
		}
		if err := c.value(wanted); err != nil {
			return err
		}
	}
}

// enter moves past an opening bracket, leave past a closing one.
func (c *cutter) enter(bracket byte) error {
	c.at++
	c.cut = append(c.cut, bracket)
	if c.depth++; c.depth > c.nesting {
		return &wire.LimitError{What: wire.LimitNesting, Limit: c.nesting}
	}
	return nil
}

func (c *cutter) leave(bracket byte) {
	c.at++
	c.cut = append(c.cut, bracket)
	c.depth--
}

// skip moves past a value whole, behind blanks, and returns it.
func (c *cutter) skip() ([]byte, error) {
	first := c.token()
	s := span{literal: isLiteral(first)}
	if !s.literal && first != '{' && first != '[' && first != '"' {
		return nil, c.unexpected("a value")
	}
	begin := c.at
	end, whole := s.end(c.data, begin)
	if c.at = end; !whole {
		return nil, c.unexpected("the end of a value")
	}
	return c.data[begin:end], nil
}

// find looks for a field by its name as it stands in the JSON.
func find(wanted *wire.Names, name []byte) *wire.Names {
	if bytes.IndexByte(name, '\\') < 0 && utf8.Valid(name) {
		return wanted.Find(name[1 : len(name)-1])
	}
	// Nobody writes them so, but they are the same names.
	text, err := decodeString(name)
	if err != nil {
		return nil
	}
	return wanted.Find([]byte(text))
}

// unexpected is the error about what stands at the cutter's place.
func (c *cutter) unexpected(wanted string) error {
	if c.at >= len(c.data) {
		return fmt.Errorf("%w: it ends in place of %s", wire.ErrMalformed, wanted)
	}
	return fmt.Errorf("%w: %s at offset %d in place of %s", wire.ErrMalformed, character(c.data[c.at]), c.at, wanted)
}
