package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxForeignText is how many characters of foreign text an error's text holds.
const MaxForeignText = 512

// Printable makes one line of foreign bytes, of at most so many characters and three
// dots, that does no harm in a log or on a terminal. Its cost is that of the line, not
// of the data.
func Printable[T string | []byte](data T, limit int) string {
	// A character has at most so many bytes; the last of those that are looked at may be
	// cut, and is beyond the limit then.
	head := string(data[:min(len(data), (limit+1)*utf8.UTFMax)])
	var line strings.Builder
	blank := false
	for _, r := range head { // bytes that are no UTF-8 come as U+FFFD
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
