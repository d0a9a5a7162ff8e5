package jsonwire

import (
	"bytes"
	"fmt"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// wholeSpan finds the end of a value in a watch, where one damaged byte must not make later frames a part of it. API servers end
// each frame by a line break: with a quote too many or too few it is in a string, with a bracket it is between two values,
// neither of which JSON allows. So only what follows a line break is checked.
type wholeSpan struct {
	span
	// behindBreak says that nothing but blanks was seen since the last line break.
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
		case s.literal: // it ends where the line does
			return at, true, nil
		case s.inString:
			return at, false, errLineInString
		}
		s.behindBreak = true
	}
}

// mayOpen says whether an object or array may begin at an offset, by what stands before it.
func mayOpen(data []byte, at int) bool {
	for at--; at >= 0; at-- {
		if c := data[at]; !isBlank(c) {
			return c == ':' || c == ',' || c == '['
		}
	}
	return true
}
