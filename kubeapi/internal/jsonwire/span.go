package jsonwire

import "bytes"

// What a byte outside of strings means to somebody who looks for the end of a value.
const (
	plain = iota
	quote
	opening
	closing
)

var brackets = [256]byte{'"': quote, '{': opening, '[': opening, '}': closing, ']': closing}

// span finds the end of a value by counting brackets outside of strings; a decoder checks the rest. The zero span stands
// before a value that begins with a bracket or a quote.
type span struct {
	// literal is set before a value that begins with neither: null, true, false, a
	// number, or what looks like one of them, which a decoder will refuse together with
	// what it stands in.
	literal bool

	depth    int
	inString bool
}

// end looks on at data from the offset at. If the value ends there it returns the
// offset behind it and true; else len(data) is where to go on as soon as there is more.
// data must begin no later than the value, and hold the same bytes each time.
func (s *span) end(data []byte, at int) (int, bool) {
	if s.literal {
		return literalEnd(data, at)
	}
	depth := s.depth
	if s.inString {
		goto insideString
	}
outside:
	for at < len(data) {
		kind := brackets[data[at]]
		at++
		switch kind {
		case plain:
		case quote:
			goto insideString
		case opening:
			depth++
		case closing:
			if depth--; depth <= 0 {
				return at, true
			}
		}
	}
	s.depth, s.inString = depth, false
	return at, false

insideString:
	for {
		length := bytes.IndexByte(data[at:], '"')
		if length < 0 {
			s.depth, s.inString = depth, true
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

// isEscaped says whether the quote at an offset belongs to the string it stands in:
// there is an odd number of backslashes before it. They are counted back to the quote
// before at most, so that none is counted for two quotes.
func isEscaped(data []byte, at int) bool {
	first := at
	for first > 0 && data[first-1] == '\\' {
		first--
	}
	return (at-first)%2 == 1
}

// literalEnd is span.end for literals. What follows one does not belong to it, but has
// to be there: without it the literal might go on.
func literalEnd(data []byte, at int) (int, bool) {
	for at < len(data) && isLiteral(data[at]) {
		at++
	}
	return at, at < len(data)
}

func isLiteral(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.'
}
