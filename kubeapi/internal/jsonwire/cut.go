package jsonwire

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Cut copies the wanted fields of an object. Of other fields it only finds the end, as when the
// object was cut out of its body. Duplicate fields are all kept, in order, for the decoder.
//
// If only some fields of a value are wanted and the value is neither an object nor an array, it
// becomes null. Dropping it would let an earlier duplicate count, or shift the elements of an
// array.
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
	cut     []byte // the wanted parts of data[:at]
	depth   int
	nesting int
}

// token skips blanks and returns the next byte without consuming it, or 0 at the end.
func (c *cutter) token() byte {
	c.at = skipBlanks(c.data, c.at)
	if c.at == len(c.data) {
		return 0
	}
	return c.data[c.at]
}

// object moves past the object at the cursor and copies its wanted fields.
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
		name, err := c.fieldName(token)
		if err != nil {
			return err
		}
		below := findField(wanted, name)
		if below == nil {
			if _, err := c.skip(); err != nil {
				return err
			}
			continue
		}
		if len(c.cut) > begin {
			c.cut = append(c.cut, ',')
		}
		c.cut = append(c.cut, name...)
		c.cut = append(c.cut, ':')
		if err := c.value(below); err != nil {
			return err
		}
	}
}

// fieldName moves past a name that begins with token, and the colon. It returns the name with its
// quotes.
func (c *cutter) fieldName(token byte) ([]byte, error) {
	if token != '"' {
		return nil, c.unexpected("the name of a field")
	}
	name, err := c.skip()
	if err != nil {
		return nil, err
	}
	if c.token() != ':' {
		return nil, c.unexpected("a colon")
	}
	c.at++
	return name, nil
}

// value moves past a value and copies the wanted parts: all of it, or some fields.
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
	c.depth++
	if c.depth > c.nesting {
		return &wire.LimitError{What: wire.LimitNesting, Limit: c.nesting}
	}
	return nil
}

func (c *cutter) leave(bracket byte) {
	c.at++
	c.cut = append(c.cut, bracket)
	c.depth--
}

// skip moves past blanks and a whole value, and returns the value.
func (c *cutter) skip() ([]byte, error) {
	first := c.token()
	s := scanner{literal: isLiteral(first)}
	if !s.literal && first != '{' && first != '[' && first != '"' {
		return nil, c.unexpected("a value")
	}
	begin := c.at
	end, complete := s.end(c.data, begin)
	c.at = end
	if !complete {
		return nil, c.unexpected("the end of a value")
	}
	return c.data[begin:end], nil
}

// findField looks up a field by its name as written in the JSON.
func findField(wanted *wire.Names, name []byte) *wire.Names {
	if bytes.IndexByte(name, '\\') < 0 && utf8.Valid(name) {
		return wanted.Find(name[1 : len(name)-1])
	}
	// Rare: an escape or invalid UTF-8 in a name.
	text, err := decodeString(name)
	if err != nil {
		return nil
	}
	return wanted.Find([]byte(text))
}

// unexpected returns the error for the byte at the cursor.
func (c *cutter) unexpected(wanted string) error {
	if c.at >= len(c.data) {
		return fmt.Errorf("%w: unexpected end, expected %s", wire.ErrMalformed, wanted)
	}
	got := formatByte(c.data[c.at])
	return fmt.Errorf("%w: got %s at offset %d, expected %s", wire.ErrMalformed, got, c.at, wanted)
}
