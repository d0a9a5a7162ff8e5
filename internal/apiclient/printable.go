package apiclient

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxForeignText bounds the characters of received text in an error's text.
const MaxForeignText = 512

// Printable returns received data as one line of at most limit characters and an ellipsis, safe for
// a log or terminal. Its cost is bounded by limit, not by the data.
func Printable[T string | []byte](data T, limit int) string {
	// The last character may be cut, but then it is beyond the limit.
	head := string(data[:min(len(data), (limit+1)*utf8.UTFMax)])
	var line strings.Builder
	blank := false
	for _, r := range head { // range replaces invalid UTF-8 by U+FFFD
		if limit == 0 {
			line.WriteRune('…')
			break
		}
		limit--
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			blank = line.Len() > 0
			continue
		}
		if blank {
			line.WriteByte(' ')
		}
		blank = false
		line.WriteRune(r)
	}
	return line.String()
}
