package apiclient

import (
	"html"
	"strconv"
	"strings"
)

// decodedText is a text with up to maxEscapeLevels levels of escapes decoded, and the source
// offsets of its bytes.
type decodedText struct {
	text string
	// offsets has the source offset of each byte of text and of its end.
	offsets []int
	levels  int // number of decoded levels
}

// maxEscapeLevels bounds the levels of escapes: a URL in JSON in JSON.
const maxEscapeLevels = 3

// newDecodedText returns source with no level decoded.
func newDecodedText(source string) decodedText {
	t := decodedText{text: source, offsets: make([]int, len(source)+1)}
	for i := range t.offsets {
		t.offsets[i] = i
	}
	return t
}

// mark marks the source positions of a part of the text.
func (t decodedText) mark(from, to int, marks []bool) {
	for i := t.offsets[from]; i < t.offsets[to]; i++ {
		marks[i] = true
	}
}

// unescape decodes one level of escapes, and reports whether there was one.
func (t decodedText) unescape() (decodedText, bool) {
	if t.levels == maxEscapeLevels || !strings.ContainsAny(t.text, `%\&`) {
		return t, false
	}
	next := decodedText{offsets: make([]int, 0, len(t.offsets)), levels: t.levels + 1}
	var text strings.Builder
	for i := 0; i < len(t.text); {
		decoded, length := decodeEscape(t.text[i:])
		text.WriteString(decoded)
		for range len(decoded) {
			next.offsets = append(next.offsets, t.offsets[i])
		}
		i += length
	}
	next.text = text.String()
	next.offsets = append(next.offsets, t.offsets[len(t.text)])
	return next, next.text != t.text
}

// decodeEscape decodes the escape or byte at the beginning of text, and returns the result and the
// length before decoding.
func decodeEscape(text string) (decoded string, length int) {
	digits := func(from, to int) (rune, bool) {
		if len(text) < to {
			return 0, false
		}
		n, err := strconv.ParseUint(text[from:to], 16, 32)
		return rune(n), err == nil
	}
	switch {
	case text[0] == '%':
		if n, ok := digits(1, 3); ok {
			return string([]byte{byte(n)}), 3
		}
	case text[0] == '&':
		if end := strings.IndexByte(text[:min(len(text), maxEntityLength)], ';'); end > 0 {
			if decoded := html.UnescapeString(text[:end+1]); decoded != text[:end+1] {
				return decoded, end + 1
			}
		}
	case text[0] == '\\' && len(text) > 1:
		switch text[1] {
		case '"', '\'', '/', '\\':
			return text[1:2], 2
		case 'u':
			if n, ok := digits(2, 6); ok {
				return string(n), 6
			}
		case 'x':
			if n, ok := digits(2, 4); ok {
				return string([]byte{byte(n)}), 4
			}
		}
	}
	return text[:1], 1
}

// maxEntityLength is the length of &#x0026;, which is at least that of any named entity for ASCII.
const maxEntityLength = 10

// incompleteEscape returns the length of an escape that is cut off at the end of text, or 0.
func incompleteEscape(text string) int {
	tail := text[max(0, len(text)-maxEntityLength):]
	at := strings.LastIndexAny(tail, `%\&`)
	if at < 0 {
		return 0
	}
	_, length := decodeEscape(tail[at:])
	if length > 1 || len(tail)-at > maxIncompleteLength(tail[at]) {
		return 0
	}
	return len(tail) - at
}

// maxIncompleteLength returns the maximum length of an incomplete escape that begins with this
// byte.
func maxIncompleteLength(first byte) int {
	switch first {
	case '%':
		return len("%2")
	case '\\':
		return len(`\u002`)
	}
	return maxEntityLength
}

// normalize returns the text in lower case with each run of white space as one space. A plus counts
// as a space, as in a query.
func (t decodedText) normalize() decodedText {
	normalized := decodedText{offsets: make([]int, 0, len(t.offsets))}
	text := make([]byte, 0, len(t.text))
	for i := range len(t.text) {
		c := t.text[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case c == '+' || c == '\t' || c == '\n' || c == '\r':
			c = ' '
		}
		if c == ' ' && len(text) > 0 && text[len(text)-1] == ' ' {
			continue
		}
		text = append(text, c)
		normalized.offsets = append(normalized.offsets, t.offsets[i])
	}
	normalized.text = string(text)
	normalized.offsets = append(normalized.offsets, t.offsets[len(t.text)])
	return normalized
}
