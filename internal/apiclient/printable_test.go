package apiclient

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPrintableMakesOneShortLine(t *testing.T) {
	for name, test := range map[string]struct {
		data  string
		limit int
		want  string
	}{
		"plain":             {"no such thing", 20, "no such thing"},
		"as long as may be": {"12345", 5, "12345"},
		"longer":            {"123456", 5, "12345…"},
		"nothing allowed":   {"x", 0, "…"},
		"empty":             {"", 0, ""},
		"lines":             {"  a\r\n\tb \n", 20, "a b"},
		"terminal":          {"\x1b[2Jred\x00", 20, "[2Jred"},
		"no UTF-8":          {"a\xff\xfeb", 20, "a\uFFFD\uFFFDb"},
		"wide characters":   {"日本語", 2, "日本…"},
		"four bytes each":   {"😀😀😀", 2, "😀😀…"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, Printable(test.data, test.limit))
			require.Equal(t, test.want, Printable([]byte(test.data), test.limit))
		})
	}
	require.Less(t, len(Printable(strings.Repeat("\n", 1<<20)+"x", 5)), 10)
}
