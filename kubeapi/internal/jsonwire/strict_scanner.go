package jsonwire

import (
	"bytes"
	"fmt"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// strictScanner finds the end of a value in a watch. One damaged byte must not make later frames
// part of the value. API servers end each frame with a line break. After a missing or extra quote
// that line break is inside a string; after a missing or extra bracket it is between two values.
// JSON allows neither, so it suffices to check the byte after each line break.
type strictScanner struct {
	scanner
	// afterLineBreak means that only blanks followed the last line break.
	afterLineBreak bool
}

var (
	errLineInString = fmt.Errorf("%w: a line break in a string", wire.ErrMalformed)
	errNextFrame    = fmt.Errorf("%w: an object or array after another value", wire.ErrMalformed)
)

// end is scanner.end, with an error for a damaged value.
func (s *strictScanner) end(data []byte, at int) (int, bool, error) {
	for {
		if s.afterLineBreak {
			at = skipBlanks(data, at)
			if at == len(data) {
				return at, false, nil
			}
			s.afterLineBreak = false
			if byteClasses[data[at]] == classOpen && !mayBeginValue(data, at) {
				return at, false, errNextFrame
			}
		}
		lineEnd := len(data)
		if length := bytes.IndexByte(data[at:], '\n'); length >= 0 {
			lineEnd = at + length
		}
		var complete bool
		at, complete = s.scanner.end(data[:lineEnd], at)
		switch {
		case complete, lineEnd == len(data):
			return at, complete, nil
		case s.literal: // it ends at the end of the line
			return at, true, nil
		case s.inString:
			return at, false, errLineInString
		}
		s.afterLineBreak = true
	}
}

// mayBeginValue reports whether an object or array may begin at an offset, judging by the byte
// before it.
func mayBeginValue(data []byte, at int) bool {
	for at--; at >= 0; at-- {
		if c := data[at]; !isBlank(c) {
			return c == ':' || c == ',' || c == '['
		}
	}
	return true
}
