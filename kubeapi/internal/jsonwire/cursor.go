package jsonwire

import (
	"fmt"
	"io"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// firstBytes is the size of the first read of a body, and the buffer of an idle watch.
const firstBytes = 4 << 10

// cursor walks through a body token by token. Bytes before the cursor are released, except within a
// frame, which stays in memory until it is complete (keep).
type cursor struct {
	window *wire.Window
	limit  int    // bytes of a value, of a frame, and of consecutive blanks
	unread []byte // window.Unread()
	at     int    // offset in unread; everything before it was parsed
	keep   bool   // do not release parsed bytes
	strict bool   // fail on a damaged value instead of waiting for its end: see strictScanner
}

func newCursor(body io.Reader, limits wire.Limits) cursor {
	// One byte more, the one that shows that a number is complete.
	window := wire.NewWindow(body, firstBytes, min(limits.ValueBytes, math.MaxInt-1)+1)
	return cursor{window: window, limit: limits.ValueBytes}
}

// fill reads more. Offsets in unread stay valid, slices of it do not. At the end of the body it
// returns io.EOF, even inside a value.
func (c *cursor) fill() error {
	err := c.window.Fill()
	c.unread = c.window.Unread()
	if _, ok := err.(*wire.LimitError); ok {
		return c.tooLarge()
	}
	return err
}

// advance moves to an offset in unread. It invalidates slices and offsets unless keep is set.
func (c *cursor) advance(to int) {
	c.at = to
	if !c.keep {
		c.release()
	}
}

// release releases the parsed bytes.
func (c *cursor) release() {
	c.window.Consume(c.at)
	c.unread = c.window.Unread()
	c.at = 0
}

func (c *cursor) tooLarge() error {
	return &wire.LimitError{What: wire.LimitValue, Limit: c.limit}
}

// token skips blanks and returns the next byte without consuming it.
func (c *cursor) token() (byte, error) {
	blanks := 0
	for {
		at := c.at
		for at < len(c.unread) && isBlank(c.unread[at]) {
			at++
		}
		blanks += at - c.at
		if blanks > c.limit {
			return 0, c.tooLarge()
		}
		if at > c.at {
			c.advance(at)
		}
		if c.at < len(c.unread) {
			return c.unread[c.at], nil
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
}

// blanks are the characters for which isBlank is true.
const blanks = " \n\r\t"

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// value returns the range in unread of the value at the cursor. It does not move the cursor.
func (c *cursor) value() (from, to int, err error) {
	first := c.unread[c.at]
	s := scanner{literal: isLiteral(first)}
	if !s.literal && byteClasses[first] != classOpen && byteClasses[first] != classQuote {
		return 0, 0, c.unexpected("a value")
	}
	if c.strict {
		to, err = c.strictValueEnd(s)
	} else {
		to, err = c.valueEnd(s)
	}
	if err != nil {
		return 0, 0, err
	}
	if to-c.at > c.limit {
		return 0, 0, c.tooLarge()
	}
	return c.at, to, nil
}

// valueEnd returns the offset of the end of a value, whatever its content.
func (c *cursor) valueEnd(s scanner) (int, error) {
	to, complete := s.end(c.unread, c.at)
	for !complete {
		if err := c.fill(); err != nil {
			return 0, err
		}
		to, complete = s.end(c.unread, to)
	}
	return to, nil
}

// strictValueEnd does the same with a strictScanner.
func (c *cursor) strictValueEnd(s scanner) (int, error) {
	w := strictScanner{scanner: s}
	to, complete, err := w.end(c.unread, c.at)
	for !complete && err == nil {
		err = c.fill()
		if err == nil {
			to, complete, err = w.end(c.unread, to)
		}
	}
	return to, err
}

// field moves past the next field name of an object to its value, and returns the name if this
// package uses it, else "". At the end of the object it moves past the brace and returns false.
// first means that this is the object's first field.
func (c *cursor) field(first bool) (name string, ok bool, err error) {
	token, err := c.token()
	if err != nil {
		return "", false, err
	}
	if token == '}' {
		c.advance(c.at + 1)
		return "", false, nil
	}
	if !first {
		if err := c.expect(',', "a comma or the end of the object"); err != nil {
			return "", false, err
		}
	}
	token, err = c.token()
	if err != nil {
		return "", false, err
	}
	if token != '"' {
		return "", false, c.unexpected("the name of a field")
	}
	from, to, err := c.value()
	if err != nil {
		return "", false, err
	}
	if err := checkName(c.unread[from:to]); err != nil {
		return "", false, err
	}
	name = knownName(c.unread[from:to])
	c.advance(to)
	if err := c.expect(':', "a colon"); err != nil {
		return "", false, err
	}
	_, err = c.token()
	return name, true, err
}

// expect moves past one token.
func (c *cursor) expect(token byte, wanted string) error {
	got, err := c.token()
	if err != nil {
		return err
	}
	if got != token {
		return c.unexpected(wanted)
	}
	c.advance(c.at + 1)
	return nil
}

// unexpected returns the error for the byte at the cursor.
func (c *cursor) unexpected(wanted string) error {
	got := formatByte(c.unread[c.at])
	return fmt.Errorf("%w: got %s, expected %s", wire.ErrMalformed, got, wanted)
}
