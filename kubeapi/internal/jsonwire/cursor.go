package jsonwire

import (
	"fmt"
	"io"
	"math"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// firstBytes is how much is read of a body before anything is known of it. It is what a
// waiting watch holds.
const firstBytes = 4 << 10

// cursor walks through a body token by token. What it has moved past it gives up, except
// within a frame, which is kept together until it is complete: see keep.
type cursor struct {
	window *wire.Window
	limit  int    // bytes of a value, of a frame, and of blanks in a row
	unread []byte // window.Unread()
	at     int    // in unread: everything before was looked at
	keep   bool   // what was looked at stays in unread
	strict bool   // a value that was damaged is not waited for: see wholeSpan
}

func newCursor(body io.Reader, limits wire.Limits) cursor {
	// The window may hold a byte more, the one that tells that a number is complete.
	window := wire.NewWindow(body, firstBytes, min(limits.ValueBytes, math.MaxInt-1)+1)
	return cursor{window: window, limit: limits.ValueBytes}
}

// fill reads on. Offsets in unread stay right, slices of it do not. At the end of the
// body it returns io.EOF, wherever that is.
func (c *cursor) fill() error {
	err := c.window.Fill()
	c.unread = c.window.Unread()
	if _, ok := err.(*wire.LimitError); ok {
		return c.tooLarge()
	}
	return err
}

// advance moves to an offset in unread. Slices and offsets are of no use after it, unless
// what was looked at is kept.
func (c *cursor) advance(to int) {
	c.at = to
	if !c.keep {
		c.drop()
	}
}

// drop gives up what was looked at.
func (c *cursor) drop() {
	c.window.Consume(c.at)
	c.unread, c.at = c.window.Unread(), 0
}

func (c *cursor) tooLarge() error {
	return &wire.LimitError{What: wire.LimitValue, Limit: c.limit}
}

// token skips blanks and returns the byte behind them, without consuming it.
func (c *cursor) token() (byte, error) {
	blanks := 0
	for {
		at := c.at
		for at < len(c.unread) && isBlank(c.unread[at]) {
			at++
		}
		if blanks += at - c.at; blanks > c.limit {
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

// blanks are all that isBlank is true for.
const blanks = " \n\r\t"

func isBlank(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// value finds the end of the value that begins at the cursor, and returns where in unread
// it stands. It does not go past it.
func (c *cursor) value() (from, to int, err error) {
	first := c.unread[c.at]
	s := span{literal: isLiteral(first)}
	if !s.literal && brackets[first] != opening && brackets[first] != quote {
		return 0, 0, c.unexpected("a value")
	}
	if c.strict {
		to, err = c.wholeValue(s)
	} else {
		to, err = c.anyValue(s)
	}
	if err != nil {
		return 0, 0, err
	}
	if to-c.at > c.limit {
		return 0, 0, c.tooLarge()
	}
	return c.at, to, nil
}

// anyValue finds the end of a value, whatever is in it.
func (c *cursor) anyValue(s span) (int, error) {
	to, whole := s.end(c.unread, c.at)
	for !whole {
		if err := c.fill(); err != nil {
			return 0, err
		}
		to, whole = s.end(c.unread, to)
	}
	return to, nil
}

// wholeValue does so, or says that it has none.
func (c *cursor) wholeValue(s span) (int, error) {
	w := wholeSpan{span: s}
	to, whole, err := w.end(c.unread, c.at)
	for !whole && err == nil {
		if err = c.fill(); err == nil {
			to, whole, err = w.end(c.unread, to)
		}
	}
	return to, err
}

// field moves to the value of the next field of an object, past its name, and returns the
// name if it is one of those that mean something here, else "". It returns false at the
// object's end, which it has moved past. first says that no field came before.
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
	if token, err = c.token(); err != nil {
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
func (c *cursor) expect(token byte, what string) error {
	got, err := c.token()
	if err != nil {
		return err
	}
	if got != token {
		return c.unexpected(what)
	}
	c.advance(c.at + 1)
	return nil
}

// unexpected is the error about what stands at the cursor.
func (c *cursor) unexpected(wanted string) error {
	return fmt.Errorf("%w: %s in place of %s", wire.ErrMalformed, character(c.unread[c.at]), wanted)
}
