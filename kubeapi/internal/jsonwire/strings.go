package jsonwire

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// stringValue parses a string value.
func (p *parser) stringValue() (any, error) {
	raw, err := p.quotedString()
	if err != nil {
		return nil, err
	}
	if len(raw) <= maxInternedLength {
		return p.values.value(raw), nil
	}
	return string(raw), nil
}

// fieldName parses a field name.
func (p *parser) fieldName() (string, error) {
	raw, err := p.quotedString()
	if err != nil {
		return "", err
	}
	if len(raw) <= maxInternedLength {
		return p.names.string(raw), nil
	}
	return string(raw), nil
}

// quotedString moves past a string and returns its content, valid until the next call.
func (p *parser) quotedString() ([]byte, error) {
	p.at++
	start := p.at
	end, simple := plainEnd(p.data, start)
	if simple {
		p.at = end + 1
		return p.data[start:end], nil
	}
	p.unquoted = append(p.unquoteBuffer(start), p.data[start:end]...)
	p.at = end
	return p.unquote()
}

// longString is the length from which a string's buffer is sized in advance.
const longString = 64 << 10

// unquoteBuffer returns an empty buffer for the string at an offset. For a long string it has the
// final size, three times the string's if bytes become U+FFFD. Growing it by append would allocate
// five times that in total.
func (p *parser) unquoteBuffer(start int) []byte {
	empty := p.unquoted[:0]
	if len(p.data)-start < longString {
		return empty
	}
	s := scanner{inString: true}
	end, _ := s.end(p.data, start)
	need := end - start
	if need > cap(empty) && !utf8.Valid(p.data[start:end]) {
		need *= utf8.RuneLen(utf8.RuneError)
	}
	return slices.Grow(empty, need)
}

const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// plainEnd finds the first byte from an offset on that is a quote, a backslash, a control character
// or not ASCII, eight bytes at a time. In each term only the lowest set bit is reliable, since
// subtractions borrow from the next byte.
func plainEnd(data []byte, at int) (end int, isQuote bool) {
	for ; at+8 <= len(data); at += 8 {
		word := binary.LittleEndian.Uint64(data[at:])
		isQuote := word ^ '"'*eachByte
		isBackslash := word ^ '\\'*eachByte
		found := (word - ' '*eachByte) | (isQuote - eachByte) | (isBackslash - eachByte) | word
		found &= highBits
		if found != 0 {
			at += bits.TrailingZeros64(found) / 8
			return at, data[at] == '"'
		}
	}
	for ; at < len(data); at++ {
		if c := data[at]; c == '"' || c == '\\' || c < ' ' || c >= utf8.RuneSelf {
			return at, c == '"'
		}
	}
	return at, false
}

// unquote appends to unquoted up to the end of the string. Like encoding/json it replaces invalid
// UTF-8 and lone surrogates by U+FFFD.
func (p *parser) unquote() ([]byte, error) {
	for p.at < len(p.data) {
		switch c := p.data[p.at]; {
		case c == '"':
			p.at++
			return p.unquoted, nil
		case c < ' ':
			return nil, p.unexpected("a character of a string")
		case c == '\\':
			if err := p.escape(); err != nil {
				return nil, err
			}
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(p.data[p.at:])
			p.unquoted = utf8.AppendRune(p.unquoted, r)
			p.at += size
		default:
			end, _ := plainEnd(p.data, p.at)
			p.unquoted = append(p.unquoted, p.data[p.at:end]...)
			p.at = end
		}
	}
	return nil, p.unexpected("the end of a string")
}

// escapes maps the letter after a backslash to its byte.
var escapes = [256]byte{
	'"':  '"',
	'\\': '\\',
	'/':  '/',
	'b':  '\b',
	'f':  '\f',
	'n':  '\n',
	'r':  '\r',
	't':  '\t',
}

func (p *parser) escape() error {
	p.at++
	if p.at == len(p.data) {
		return p.unexpected("an escape")
	}
	c := p.data[p.at]
	if c == 'u' {
		p.at--
		return p.unicodeEscape()
	}
	if escapes[c] == 0 {
		return p.unexpected("an escape")
	}
	p.unquoted = append(p.unquoted, escapes[c])
	p.at++
	return nil
}

// unicodeEscape moves past one \uHHHH, or past two that are a surrogate pair.
func (p *parser) unicodeEscape() error {
	r := hexadecimal(p.data[p.at:])
	if r < 0 {
		return p.unexpected(`an escape of the form \u0000`)
	}
	p.at += 6
	if utf16.IsSurrogate(r) {
		pair := utf16.DecodeRune(r, hexadecimal(p.data[p.at:]))
		if pair != utf8.RuneError {
			p.at += 6
		}
		r = pair
	}
	p.unquoted = utf8.AppendRune(p.unquoted, r)
	return nil
}

// hexadecimal returns the number in \uHHHH, or -1 if data does not begin with one.
func hexadecimal(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range data[2:6] {
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// decodeString returns the content of a single JSON string.
func decodeString(raw []byte) (string, error) {
	value, err := parse(raw, 1)
	if text, ok := value.(string); ok && err == nil {
		return text, nil
	}
	return "", errors.New("it is not a string")
}
