package kubeapi

import (
	"html"
	"strconv"
	"strings"
)

// plainText is a text without the escapes of another one, its source.
type plainText struct {
	text string
	// at is where each byte comes from in the source; it has one more, for the end.
	at    []int
	depth int // of the escapes that are decoded
}

// mostEscapes is how many times a text may be escaped: a URL in JSON in JSON.
const mostEscapes = 3

// asWritten is a text as it is.
func asWritten(source string) plainText {
	p := plainText{text: source, at: make([]int, len(source)+1)}
	for i := range p.at {
		p.at[i] = i
	}
	return p
}

// mark marks the source of a part of the text.
func (p plainText) mark(from, to int, marks []bool) {
	for i := p.at[from]; i < p.at[to]; i++ {
		marks[i] = true
	}
}

// unescaped undoes one escape of all characters, and says whether there was one.
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

// escape reads what a text begins with: what it means, and its length.
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

// longestEntity is the length of &#x0026; and more than that of those with names that
// stand for ASCII.
const longestEntity = 10

// cutEscape is the length of an escape that a text ends in the middle of.
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

// longest is how much of an escape may be there without its end.
func longest(begin byte) int {
	switch begin {
	case '%':
		return len("%2")
	case '\\':
		return len(`\u002`)
	}
	return longestEntity
}

// folded is the text in lower case, with a space for any number of them. A plus is one:
// that is how a query is written.
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
