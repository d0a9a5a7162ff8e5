package jsonwire

import "bytes"

// Classes of bytes outside of strings, for finding the end of a value.
const (
	classOther = iota
	classQuote
	classOpen
	classClose
)

var byteClasses = [256]byte{
	'"': classQuote,
	'{': classOpen,
	'[': classOpen,
	'}': classClose,
	']': classClose,
}

// scanner finds the end of a value by counting brackets outside of strings; a decoder checks the
// rest. The zero value is for a value that begins with a bracket or a quote.
type scanner struct {
	// literal is set for any other value: null, true, false, a number, or a word that a decoder
	// will refuse later.
	literal bool

	depth    int
	inString bool
}

// end scans data from the offset at. It returns the offset after the value and true, or len(data)
// and false if the value continues. Then call it again from there with more data. data must start
// at or before the value, and its bytes must not change.
func (s *scanner) end(data []byte, at int) (int, bool) {
	if s.literal {
		return literalEnd(data, at)
	}
	depth := s.depth
	if s.inString {
		goto insideString
	}
outside:
	for at < len(data) {
		class := byteClasses[data[at]]
		at++
		switch class {
		case classOther:
		case classQuote:
			goto insideString
		case classOpen:
			depth++
		case classClose:
			depth--
			if depth <= 0 {
				return at, true
			}
		}
	}
	s.depth = depth
	s.inString = false
	return at, false

insideString:
	for {
		length := bytes.IndexByte(data[at:], '"')
		if length < 0 {
			s.depth = depth
			s.inString = true
			return len(data), false
		}
		at += length + 1
		if isEscaped(data, at-1) {
			continue
		}
		if depth == 0 {
			return at, true
		}
		goto outside
	}
}

// isEscaped reports whether the quote at an offset is escaped: an odd number of backslashes
// precedes it. Counting stops at the previous quote, so each backslash is counted once.
func isEscaped(data []byte, at int) bool {
	first := at
	for first > 0 && data[first-1] == '\\' {
		first--
	}
	return (at-first)%2 == 1
}

// literalEnd is scanner.end for literals. Their end is known only when another byte follows.
func literalEnd(data []byte, at int) (int, bool) {
	for at < len(data) && isLiteral(data[at]) {
		at++
	}
	return at, at < len(data)
}

func isLiteral(c byte) bool {
	return 'a' <= c && c <= 'z' ||
		'A' <= c && c <= 'Z' ||
		'0' <= c && c <= '9' ||
		c == '-' || c == '+' || c == '.'
}
