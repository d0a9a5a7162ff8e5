package apiclient

import (
	"html"
	"strconv"
	"strings"
)

// plainText is a source text with up to mostEscapes levels of escapes decoded.
type plainText struct {
	text string
	// at has, for each byte, its position in the source, and one more for the end.
	at    []int
	depth int // number of decoded levels
}

// mostEscapes bounds the levels of escapes: a URL in JSON in JSON.
const mostEscapes = 3

// asWritten returns the text without decoding.
func asWritten(source string) plainText {
	p := plainText{text: source, at: make([]int, len(source)+1)}
	for i := range p.at {
		p.at[i] = i
	}
	return p
}

// mark marks the source positions of a part of the text.
func (p plainText) mark(from, to int, marks []bool) {
	for i := p.at[from]; i < p.at[to]; i++ {
		marks[i] = true
	}
}

// unescaped decodes one level of escapes, and reports whether there was one.
func (p plainText) unescaped() (plainText, bool) {
	if p.depth == mostEscapes || !strings.ContainsAny(p.text, `%\&`) {
		return p, false
	}
	next := plainText{at: make([]int, 0, len(p.at)), depth: p.depth + 1}
	var text strings.Builder
	for i := 0; i < len(p.text); {
		meant, length := escape(p.text[i:])
		text.WriteString(meant)
		for range len(meant) {
			next.at = append(next.at, p.at[i])
		}
		i += length
	}
	next.text, next.at = text.String(), append(next.at, p.at[len(p.text)])
	return next, next.text != p.text
}

// escape decodes the escape or character at the beginning of text, and returns its meaning and length.
func escape(text string) (meant string, length int) {
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
		if end := strings.IndexByte(text[:min(len(text), longestEntity)], ';'); end > 0 {
			if meant := html.UnescapeString(text[:end+1]); meant != text[:end+1] {
				return meant, end + 1
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

// longestEntity is the length of &#x0026;, which is at least that of any named entity for ASCII.
const longestEntity = 10

// cutEscape returns the length of an incomplete escape at the end of text.
func cutEscape(text string) int {
	tail := text[max(0, len(text)-longestEntity):]
	at := strings.LastIndexAny(tail, `%\&`)
	if at < 0 {
		return 0
	}
	if _, length := escape(tail[at:]); length > 1 || len(tail)-at > longest(tail[at]) {
		return 0
	}
	return len(tail) - at
}

// longest returns the maximum length of an incomplete escape that begins with this byte.
func longest(begin byte) int {
	switch begin {
	case '%':
		return len("%2")
	case '\\':
		return len(`\u002`)
	}
	return longestEntity
}

// folded returns the text in lower case with each run of white space as one space. A plus counts as a space, as in a
// query.
func (p plainText) folded() plainText {
	folded := plainText{at: make([]int, 0, len(p.at))}
	text := make([]byte, 0, len(p.text))
	for i := range len(p.text) {
		c := p.text[i]
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
		folded.at = append(folded.at, p.at[i])
	}
	folded.text, folded.at = string(text), append(folded.at, p.at[len(p.text)])
	return folded
}
