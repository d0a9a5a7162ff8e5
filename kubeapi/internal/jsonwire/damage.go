package jsonwire

import (
	"bytes"
	"fmt"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// wholeSpan finds the end of a value in a watch. One damaged byte must not make later frames part of the value. API
// servers end each frame with a line break. After a missing or extra quote that line break is inside a string; after a
// missing or extra bracket it is between two values. JSON allows neither, so it suffices to check the byte after each
// line break.
type wholeSpan struct {
	span
	// behindBreak means that only blanks followed the last line break.
	behindBreak bool
}

var (
	errLineInString = fmt.Errorf("%w: a line break in a string", wire.ErrMalformed)
	errNextFrame    = fmt.Errorf("%w: an object or array behind another value", wire.ErrMalformed)
)

// end is span.end, with an error for a value that cannot end.
func (s *wholeSpan) end(data []byte, at int) (int, bool, error) {
	for {
		if s.behindBreak {
			if at = skipBlanks(data, at); at == len(data) {
				return at, false, nil
			}
			s.behindBreak = false
			if brackets[data[at]] == opening && !mayOpen(data, at) {
				return at, false, errNextFrame
			}
		}
		lineEnd := len(data)
		if length := bytes.IndexByte(data[at:], '\n'); length >= 0 {
			lineEnd = at + length
		}
		var whole bool
		at, whole = s.span.end(data[:lineEnd], at)
		switch {
		case whole, lineEnd == len(data):
			return at, whole, nil
		case s.literal: // it ends at the end of the line
			return at, true, nil
		case s.inString:
			return at, false, errLineInString
		}
		s.behindBreak = true
	}
}

// mayOpen reports whether an object or array may begin at an offset, judging by the byte before it.
func mayOpen(data []byte, at int) bool {
	for at--; at >= 0; at-- {
		if c := data[at]; !isBlank(c) {
			return c == ':' || c == ',' || c == '['
		}
	}
	return true
}
